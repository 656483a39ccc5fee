package dir_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// TestMain also starts this program as the other processes that write to the same directory.
func TestMain(m *testing.M) {
	var err error
	switch os.Getenv("CORPUS_TEST_WRITER") {
	case "":
		os.Exit(m.Run())
	case "append":
		err = appendLines(os.Getenv("CORPUS_TEST_DIR"), os.Getenv("CORPUS_TEST_NAME"))
	case "overwrite":
		err = overwriteForEver(os.Getenv("CORPUS_TEST_DIR"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func writer(t *testing.T, role, root, name string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), "CORPUS_TEST_WRITER="+role, "CORPUS_TEST_DIR="+root, "CORPUS_TEST_NAME="+name)
	return cmd
}

const linesEach = 15

func appendLines(root, name string) error {
	ctx, s := context.Background(), creating(root)
	for i := range linesEach {
		for {
			text, info, err := read(ctx, s, "log")
			if err != nil {
				return err
			}
			_, err = put(ctx, s, "log", fmt.Sprintf("%s%s line %d\n", text, name, i), store.Condition{IfMatch: info.ETag})
			if err == nil {
				break
			}
			if !errors.Is(err, store.ErrPrecondition) {
				return err
			}
		}
	}
	return nil
}

func TestConcurrentProcessesLoseNoWrites(t *testing.T) {
	root := t.TempDir()
	s := creating(root)
	mustPut(t, s, "log", "")
	names := []string{"ann", "bob", "eve", "joe"}
	var all sync.WaitGroup
	for _, name := range names {
		cmd := writer(t, "append", root, name)
		all.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		})
	}
	all.Wait()
	text, _, err := read(t.Context(), s, "log")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		for i := range linesEach {
			if n := strings.Count(text, fmt.Sprintf("%s line %d\n", name, i)); n != 1 {
				t.Errorf("the object has line %d of %s %d times", i, name, n)
			}
		}
	}
}

const versionSize = 300_000

func overwriteForEver(root string) error {
	s := creating(root)
	for i := 0; ; i++ {
		text := strings.Repeat(string(rune('a'+i%26)), versionSize)
		if _, err := put(context.Background(), s, "key", text, store.Condition{}); err != nil {
			return err
		}
	}
}

// TestKilledWriters kills a writer at a random moment: all objects are complete, and the next writer is not blocked.
func TestKilledWriters(t *testing.T) {
	root := t.TempDir()
	s := creating(root)
	mustPut(t, s, "key", strings.Repeat("z", versionSize))
	for i := range 8 {
		cmd := writer(t, "overwrite", root, "")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(40+7*i) * time.Millisecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed, which is an error
		text, info, err := read(t.Context(), s, "key")
		if err != nil || len(text) != versionSize || strings.Count(text, text[:1]) != versionSize {
			t.Fatalf("after kill %d: %d bytes, %v", i, len(text), err)
		}
		if got := keys(t, s); got != "key" {
			t.Errorf("the store lists %s", got)
		}
		if _, err := put(t.Context(), s, "key", text, store.Condition{IfMatch: info.ETag}); err != nil {
			t.Errorf("the next write: %v", err)
		}
	}
}
