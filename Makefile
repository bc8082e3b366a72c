# Everything that matters runs without make (README): these are the long runs.

.PHONY: nightly explore fuzz levels soak

# Every test at every kernel level of this machine, then the large scopes of the proof, then an hour of traffic.
nightly: levels explore fuzz soak

# More than 20 million states, ten minutes on two quiet cores, 3 GiB; two scopes at a time. At the end
# stands a table: per scope states, transitions, states/s, the most deadlines that may run out before
# everything is over, and how often what was seen; and the sums.
explore:
	BATON_NIGHTLY=1 go test -count=1 -timeout 6h -v -run '^(TestGateHolds|TestTwoExplorersAgree)$$' ./proof/gate

# The fuzzer as scheduler finds mutants, from no seed at all.
fuzz:
	BATON_NIGHTLY=1 go test -count=1 -v -run FuzzerFinds ./proof/mutants

levels:
	for level in generic avx2 avx512 vnni bf16 amx; do \
		KERNELS=$$level go run ./cmd/baton version >/dev/null 2>&1 || { echo "this machine cannot run $$level"; continue; }; \
		echo "== $$level"; KERNELS=$$level go test -count=1 ./... || exit 1; \
	done

# An hour of mixed traffic through a prefill and a decode process: short and long prompts, clients
# that leave, several choices, answers that have a form. No answer may be wrong but where the model
# is by itself, as one process without a cache must show by the same answer, and no process may grow.
# At the end stands what came of the requests, and each process's memory.
soak:
	BATON_SOAK=1h go test -count=1 -v -timeout 2h -run TestSoak ./proof/chaos
