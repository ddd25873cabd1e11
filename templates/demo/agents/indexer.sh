. agents/common.sh
mkdir -p search
step "reading the table of orders"
step "collecting its words"
work_until_released
step "writing the index"
tr -cs '[:alpha:]' '\n' <schema/orders.sql | sort -u >search/index.txt
