package cmd_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRaceRunsWhatStartsGoroutines compares the list of `make race` with the code: each package that starts goroutines
// is in it, or here with a reason.
func TestRaceRunsWhatStartsGoroutines(t *testing.T) {
	elsewhere := map[string]string{
		"agent":                    "its one goroutine asks systemd, which none of its tests has; the tests take minutes",
		"artifact/publish":         "only the tests of commands beside each other run there: the others take minutes",
		"artifact/store/storetest": "the tests of artifact/store run it",
		"packaging":                "its tests took more than a minute with the detector",
		"packaging/hosttest/fault": "a test runs it in a host to throw away",
		"packaging/hosttest/lab":   "a test runs it in a host to throw away",
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	list, _, _ := strings.Cut(strings.SplitAfterN(string(makefile), "RACE := ", 2)[1], "\n\n")
	listed := regexp.MustCompile(`\./[a-z/]+`).FindAllString(list, -1)
	starting := packagesStartingGoroutines(t)
	for _, dir := range starting {
		if !slices.Contains(listed, "./"+dir) && elsewhere[dir] == "" {
			t.Errorf("%s starts goroutines: add it to RACE in the Makefile, or name a reason here", dir)
		}
	}
	for dir := range elsewhere {
		if !slices.Contains(starting, dir) {
			t.Errorf("%s starts no goroutine: remove it from this test", dir)
		}
	}
}

var startsGoroutine = regexp.MustCompile(`(?m)^\s*go (func\b|[a-zA-Z.]+\()|errgroup\.|\.Go\(func`)

// packagesStartingGoroutines returns the directories of this repository with a goroutine outside of tests, sorted.
func packagesStartingGoroutines(t *testing.T) (dirs []string) {
	t.Helper()
	for _, top := range []string{"agent", "artifact", "cmd", "grains", "packaging", "state"} {
		err := filepath.WalkDir("../"+top, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../")
			text, err := os.ReadFile(path)
			if startsGoroutine.Match(text) && !slices.Contains(dirs, dir) && !strings.Contains(dir, "testdata") {
				dirs = append(dirs, dir)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(dirs)
	return dirs
}
