#!/bin/sh
# Deploys site/ to a folder of its own beneath the one that the manifest names.
# The arguments also come as one JSON object on standard input.
set -eu
environment=$1
skip_tests=$2
folder=/srv/staging/$environment

if [ "$skip_tests" != true ]; then
    grep -q '</html>' site/index.html || { echo "site/index.html is not whole" >&2; exit 1; }
fi
mkdir -p "$folder"
cp site/index.html "$folder/index.html"
echo "deployed to $environment" >> deploys.log
printf '{"environment": "%s", "tested": %s}\n' "$environment" "$([ "$skip_tests" = true ] && echo false || echo true)"
