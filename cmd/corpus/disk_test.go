package main

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// TestDiskErrorsHaveACure checks that an error of a full or read-only disk, of the store or of the keys, has a hint.
func TestDiskErrorsHaveACure(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{syscall.ENOSPC: "make room", syscall.EDQUOT: "make room",
		syscall.EROFS: "for writing"} {
		err := code(fmt.Errorf("keeping what was seen: %w", &fs.PathError{Op: "open", Path: "keys/seen/.lock", Err: errno}))
		if !strings.Contains(diag.HintOf(err), want) || !strings.Contains(err.Error(), "keys/seen/.lock") {
			t.Errorf("%v has the hint %q, want %q in it", err, diag.HintOf(err), want)
		}
	}
}

// TestKeysUsedWithAnotherStoreCanInitialize checks that keys that failed to publish into another team's store can set
// up their own.
func TestKeysUsedWithAnotherStoreCanInitialize(t *testing.T) {
	s := newStore(t)
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	s.expect(0, "keys new --keys @mine", "made")
	s.copy("keys/root.json", "mine/root.json")
	s.expect(2, "publish myapp 2.0 @one.tar.zst --channel testing --keys @mine", "keys to sign it")
	s.remove("mine/root.json")
	s.expect(0, "store init --keys @mine --store file://@own", "set up")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing --keys @mine --store file://@own",
		"myapp/testing is 1.0")
	s.expect(2, "store init", "set up a store before")
}
