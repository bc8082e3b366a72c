package store_test

import (
	"fmt"

	"baton/engine/weights/store"
)

func ExampleResolve() {
	s, err := store.Resolve("") // the default needs no file
	if err != nil {
		panic(err)
	}
	f, err := s.Open()
	if err != nil {
		panic(err)
	}
	defer f.Close()
	name, _ := f.String("general.name")
	fmt.Println(s.Name, "is", name)
	// Output: recall is Recall 1M
}
