# Everything that matters runs without make (README): these are the long runs.

.PHONY: nightly levels

# The large scopes of the proof (about 6 million states more than the gate, 4 GiB, half an hour on
# one core), then every test at every kernel level of this machine.
nightly: levels
	BATON_NIGHTLY=1 go test -count=1 -timeout 3h -v -run TestGateHolds ./proof/gate

levels:
	for level in generic avx2 avx512 vnni bf16; do \
		KERNELS=$$level go run ./cmd/baton version >/dev/null 2>&1 || { echo "this machine cannot run $$level"; continue; }; \
		echo "== $$level"; KERNELS=$$level go test -count=1 ./... || exit 1; \
	done
