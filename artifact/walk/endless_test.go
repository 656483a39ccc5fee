package walk_test

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
)

// TestWalkOfGrowingTreeEnds walks a tree in which a user makes a directory in each directory that is entered.
func TestWalkOfGrowingTreeEnds(t *testing.T) {
	root := homes(t)
	do(t, unix.Mkdir(root+"/srv", 0o755))
	d, err := open(t, walk.Options{Safe: true}, root).OpenDir("/srv")
	do(t, err)
	defer d.Close()
	defer func() { do(t, exec.Command("rm", "-rf", root+"/srv/x").Run()) }() // os.RemoveAll opens all levels at once
	do(t, unix.Mkdirat(d.FD(), "x", 0o755))
	levels := 0
	err = d.Walk(walk.Visit{Enter: func(at *walk.Dir, name string, _ *unix.Stat_t) (bool, error) {
		levels++
		sub, err := unix.Openat(at.FD(), name, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return false, err
		}
		return levels < 1<<20, errors.Join(unix.Mkdirat(sub, "x", 0o755), unix.Close(sub))
	}})
	if err == nil || !strings.Contains(err.Error(), "more levels or names") || levels > 1<<17 {
		t.Errorf("after %d levels: %v", levels, err)
	}
}

// TestReadOfGrowingDirectoryEnds reads a directory in which a user renames files, so that it lists each of them again.
func TestReadOfGrowingDirectoryEnds(t *testing.T) {
	read := 0
	_, err := walk.ReadNames(func(n int) ([]string, error) {
		names := make([]string, n)
		for i := range names {
			read++
			names[i] = fmt.Sprint(read)
		}
		return names, nil
	})
	if err == nil || read > 1<<23 {
		t.Errorf("after %d names: %v", read, err)
	}
}
