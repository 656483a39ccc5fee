package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
)

// A store is wrapped in a Stack before it is used: retries, timeouts and limits are decorators.
func Example() {
	ctx := context.Background()
	s := store.Stack(mem.New(), store.Settings{})

	const key, text = "deploy/myapp/notes.txt", "version 1.0"
	if _, err := s.Put(ctx, key, strings.NewReader(text), int64(len(text)), store.Condition{}); err != nil {
		fmt.Println(err)
		return
	}
	body, info, err := s.Get(ctx, key, int64(len("version ")))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer body.Close()
	rest, err := io.ReadAll(body)
	fmt.Printf("%s, %d bytes in all: %q, %v\n", info.Key, info.Size, rest, err)

	_, _, err = s.Get(ctx, "deploy/myapp/absent", 0)
	fmt.Println(errors.Is(err, store.ErrNotFound))
	// Output:
	// deploy/myapp/notes.txt, 11 bytes in all: "1.0", <nil>
	// true
}

// Of two publishers that read the same object, the one that writes last gets an error and reads it again.
func ExampleCondition() {
	ctx := context.Background()
	s := mem.New()
	first, err := s.Put(ctx, "timestamp.json", strings.NewReader("1"), 1, store.Condition{IfAbsent: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	both := store.Condition{IfMatch: first.ETag}
	_, err = s.Put(ctx, "timestamp.json", strings.NewReader("2"), 1, both)
	fmt.Println("first:", err)
	_, err = s.Put(ctx, "timestamp.json", strings.NewReader("3"), 1, both)
	fmt.Println("second is refused:", errors.Is(err, store.ErrPrecondition))
	// Output:
	// first: <nil>
	// second is refused: true
}
