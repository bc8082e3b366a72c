// Writes what llama.cpp makes of the corpus, in the form of expected.py.
//
//	gcc -O2 llamacpp.c -o llamacpp -L DIR -l:libllama.so -l:libggml.so -Wl,-rpath,DIR
//	./llamacpp DIR vocab.gguf corpus.bin NAME.sums
//
// The file of a vocabulary and the corpus come from vocab.py. With a fifth argument the ids of the
// text with that number are printed instead.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint8_t b[1024]; } blob; // llama_model_params, of which one byte is set

blob llama_model_default_params(void);
void *llama_model_load_from_file(const char *, blob);
const void *llama_model_get_vocab(void *);
int32_t llama_tokenize(const void *, const char *, int32_t, int32_t *, int32_t, _Bool, _Bool);
void ggml_backend_load_all_from_path(const char *);
void llama_log_set(void (*)(int, const char *, void *), void *);

enum { vocab_only = 72 }; // its place in llama_model_params of node-llama-cpp 3.21.1

static void quiet(int level, const char *text, void *user) {
	if (getenv("V")) fputs(text, stderr);
}

static uint32_t fnv(uint32_t h, const void *p, size_t n) {
	for (const uint8_t *b = p; n--; b++) h = (h ^ *b) * 0x01000193u;
	return h;
}

static int32_t ids[1 << 20];
static char text[1 << 22];

int main(int argc, char **argv) {
	llama_log_set(quiet, 0);
	ggml_backend_load_all_from_path(argv[1]);
	argv++, argc--;
	blob p = llama_model_default_params();
	p.b[vocab_only] = 1;
	void *model = llama_model_load_from_file(argv[1], p);
	if (!model) return fprintf(stderr, "%s cannot be loaded\n", argv[1]), 1;
	const void *vocab = llama_model_get_vocab(model);
	FILE *in = fopen(argv[2], "rb"), *out = fopen(argv[3], "wb");
	uint32_t n, whole = 0x811c9dc5u, head[2] = {0, 1};
	fwrite(head, 4, 2, out);
	for (int number = 0; fread(&n, 4, 1, in) == 1; number++) {
		if (n && fread(text, n, 1, in) != 1) return 1;
		whole = fnv(fnv(whole, text, n), "\xff", 1);
		uint32_t h = 0x811c9dc5u;
		for (int special = 1; special >= 0; special--) {
			int32_t k = llama_tokenize(vocab, text, n, ids, 1 << 20, 0, special), end = -1;
			if (k < 0) return fprintf(stderr, "text %d: %d\n", number, k), 1;
			h = fnv(h, ids, 4 * k);
			if (special) h = fnv(h, &end, 4);
			if (argc > 4 && atoi(argv[4]) == number) {
				for (int i = 0; i < k; i++) printf("%d ", ids[i]);
				printf("\n");
			}
		}
		fwrite(&h, 4, 1, out);
	}
	head[0] = whole;
	rewind(out);
	fwrite(head, 4, 2, out);
	return fclose(out);
}
