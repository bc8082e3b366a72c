package leg_test

import (
	"fmt"
	"strings"

	"baton/serve/leg"
)

func ExampleReader() {
	answer := `{"accepted":true}
{"text":"Hello","ids":[31]}
{"end":{"outcome":"success","finish":"stop","prompt_tokens":4,"output_tokens":1,"cached":0}}
`
	r := leg.NewReader(strings.NewReader(answer))
	for {
		line, err := r.Next()
		if err != nil {
			fmt.Println(err)
			return
		}
		switch {
		case line.Accepted:
			fmt.Println("the room is registered")
		case line.End != nil:
			fmt.Println(line.End.Outcome, line.End.Finish)
		default:
			fmt.Println(line.Text, line.IDs)
		}
	}
	// Output:
	// the room is registered
	// Hello [31]
	// success stop
	// EOF
}
