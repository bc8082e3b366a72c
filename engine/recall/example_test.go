package recall_test

import (
	"fmt"

	"baton/engine/recall"
)

func ExamplePrompt() {
	p := recall.Prompt{Facts: []recall.Fact{{Name: "Maria", Code: "amber falcon"}, {Name: "Tobias", Code: "copper swan"}}}
	q := p.Ask("Tobias")
	for _, m := range p.Messages(q.Question) {
		fmt.Println(m.Role+":", m.Content)
	}
	fmt.Println("right:", q.Answer)
	fmt.Println("right:", p.Ask("Zoe").Answer)
	// Output:
	// system: The code of Maria is amber falcon. The code of Tobias is copper swan. The code of all others is unknown.
	// user: What is the code of Tobias?
	// right: The code of Tobias is copper swan.
	// right: The code of Zoe is unknown.
}
