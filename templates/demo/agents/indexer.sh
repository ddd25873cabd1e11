. agents/common.sh
mkdir -p search
work_until_released
tr -cs '[:alpha:]' '\n' <schema/orders.sql | sort -u >search/index.txt
