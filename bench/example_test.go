package bench_test

import (
	"context"
	"fmt"
	"io"
	"os"

	"baton/bench"
)

func ExamplePlan_Run() {
	p := bench.Plan{Model: "recall", Bytes: 2 << 20, Tests: []string{"tg64"}, Threads: []int{1, 2}, Repeat: 3}
	engine := func(_ string, threads int) (float64, error) { return 1000 * float64(threads), nil }
	results, err := p.Run(context.Background(), engine, io.Discard)
	if err != nil {
		fmt.Println(err)
	}
	bench.WriteTable(os.Stdout, results)
	// Output:
	// | model  |     size | threads | batch | test |            t/s |
	// | ------ | -------: | ------: | ----: | ---: | -------------: |
	// | recall | 2.00 MiB |       1 |     1 | tg64 | 1000.00 ± 0.00 |
	// | recall | 2.00 MiB |       2 |     1 | tg64 | 2000.00 ± 0.00 |
}
