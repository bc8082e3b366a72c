package bench_test

import (
	"context"
	"fmt"
	"io"
	"os"

	"baton/bench"
)

func ExamplePlan_Run() {
	p := bench.Plan{Model: "recall", Tests: []string{"tg64"}, Threads: []int{1, 2}, Repeat: 3}
	engine := func(_ string, threads int) (float64, error) { return 1000 * float64(threads), nil }
	results, err := p.Run(context.Background(), engine, io.Discard)
	if err != nil {
		fmt.Println(err)
	}
	bench.WriteTable(os.Stdout, results)
	// Output:
	// MODEL   TEST  THREADS  TOKENS/S
	// recall  tg64  1        1000.0
	// recall  tg64  2        2000.0
}
