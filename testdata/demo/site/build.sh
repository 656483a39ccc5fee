set -eu
mkdir -p public
for page in pages/*.txt; do
    name=$(basename "$page" .txt)
    { echo '<!doctype html><pre>'; cat "$page"; echo '</pre>'; } >"public/$name.html"
done
