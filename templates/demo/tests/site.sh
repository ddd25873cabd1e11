for words in "200 OK" "chapter of the writer" "chapter of the editor" orders; do
    grep -q "$words" site/index.txt || { echo "site/index.txt lacks: $words"; exit 1; }
done
