. agents/common.sh
mkdir -p schema
echo "CREATE TABLE orders (id INTEGER PRIMARY KEY, placed TEXT NOT NULL);" >schema/orders.sql
