package checkpoint_test

import (
	"fmt"

	"baton/engine/chat"
	"baton/engine/checkpoint"
)

// A gateway needs a model's words, not its weights.
func ExampleOpen() {
	c, err := checkpoint.Open("recall")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	ids, err := c.Template.Encode([]chat.Message{{Role: "user", Content: "Hello"}})
	fmt.Println(c.Config.Arch, len(ids) > 0, err)
	// Output: llama true <nil>
}
