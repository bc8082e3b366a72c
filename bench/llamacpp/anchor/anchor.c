// Speed of llama.cpp through the C API of its libllama: usage: anchor LIBDIR MODEL THREADS REPEAT TEST...
// A TEST is ppN (a prompt of N tokens and its last logits) or tgN (N tokens one by one after a first one). Each runs
// once to warm up and REPEAT times; a line "TEST median" is printed, in tokens per second. One thread is timed by the
// processor time of the process, several by the clock on the wall.
//
// The prebuilt libraries come without headers, so parameter structs are opaque blobs of which the first three fields of
// the context's are set: n_ctx, n_batch, n_ubatch.
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct { uint8_t bytes[1024]; } blob;
typedef struct {
	int32_t n_tokens;
	int32_t *token;
	float *embd;
	int32_t *pos, *n_seq_id;
	int32_t **seq_id;
	int8_t *logits;
} batch;

blob llama_model_default_params(void);
blob llama_context_default_params(void);
void *llama_model_load_from_file(const char *, blob);
void *llama_init_from_model(void *, blob);
void llama_set_n_threads(void *, int32_t, int32_t);
batch llama_batch_get_one(int32_t *, int32_t);
int32_t llama_decode(void *, batch);
void *llama_get_memory(void *);
void llama_memory_clear(void *, bool);
float *llama_get_logits_ith(void *, int32_t);
void llama_log_set(void (*)(int, const char *, void *), void *);
void ggml_backend_load_all_from_path(const char *);

static void silent(int level, const char *text, void *data) {}

static int threads;

static double now(void) {
	struct timespec t;
	clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
	return t.tv_sec + 1e-9 * t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
	double x = *(double *)a, y = *(double *)b;
	return x < y ? -1 : x > y;
}

static void die(const char *what) {
	fprintf(stderr, "anchor: %s\n", what);
	exit(1);
}

static void decode(void *ctx, int32_t *tokens, int n) {
	if (llama_decode(ctx, llama_batch_get_one(tokens, n))) die("llama_decode failed");
	float *logits = llama_get_logits_ith(ctx, -1);
	if (logits[0] != logits[0]) die("logits are not numbers");
}

// run returns the seconds of one test.
static double run(void *ctx, bool prompt, int32_t *tokens, int n) {
	llama_memory_clear(llama_get_memory(ctx), true);
	if (prompt) {
		double began = now();
		decode(ctx, tokens, n);
		return now() - began;
	}
	decode(ctx, tokens, 1);
	double began = now();
	for (int i = 0; i < n; i++) decode(ctx, tokens + i, 1);
	return now() - began;
}

int main(int argc, char **argv) {
	if (argc < 6) die("usage: anchor LIBDIR MODEL THREADS REPEAT TEST...");
	llama_log_set(silent, NULL);
	ggml_backend_load_all_from_path(argv[1]);
	threads = atoi(argv[3]);
	int repeat = atoi(argv[4]);
	if (threads < 1 || repeat < 1 || repeat > 64) die("THREADS must be at least 1 and REPEAT between 1 and 64");
	void *model = llama_model_load_from_file(argv[2], llama_model_default_params());
	if (!model) die("cannot load the model");
	blob params = llama_context_default_params();
	uint32_t sizes[3] = {1024, 2048, 512};
	memcpy(params.bytes, sizes, sizeof sizes);
	void *ctx = llama_init_from_model(model, params);
	if (!ctx) die("cannot make a context");
	llama_set_n_threads(ctx, threads, threads);
	int32_t tokens[1024];
	for (int i = 0; i < 1024; i++) tokens[i] = 300 + i * 7919 % 40000;
	for (int t = 5; t < argc; t++) {
		bool prompt = !strncmp(argv[t], "pp", 2);
		int n = atoi(argv[t] + 2);
		if (n < 1 || n > 1000 || (!prompt && strncmp(argv[t], "tg", 2))) die("a TEST is ppN or tgN with N from 1 to 1000");
		double speed[64];
		run(ctx, prompt, tokens, n);
		for (int r = 0; r < repeat; r++) speed[r] = n / run(ctx, prompt, tokens, n);
		qsort(speed, repeat, sizeof *speed, ascending);
		printf("%s %.3f\n", argv[t], (speed[(repeat - 1) / 2] + speed[repeat / 2]) / 2);
		fflush(stdout);
	}
	return 0;
}
