. agents/common.sh
mkdir -p schema
step "reading what an order is"
step "writing the table of orders"
echo "CREATE TABLE orders (id INTEGER PRIMARY KEY, placed TEXT NOT NULL);" >schema/orders.sql
