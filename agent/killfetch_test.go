package agent_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/dir"
)

// The environment of a child whose fetch is watched and slow, so that it can be killed during it.
const (
	childTally = "CORPUS_TEST_TALLY" // file that grows by a byte for each KiB of artifacts that arrived
	// killMoments is how many moments are tried; more by hand.
	killMoments = "CORPUS_TEST_KILLS"
)

// tally is a store that notes at once, so that even a killed process has told, what arrived.
type tally struct {
	store.Store
	file *os.File
}

func tallied(s store.Store) store.Store {
	name := os.Getenv(childTally)
	if name == "" {
		return s
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return s
	}
	return &tally{Store: s, file: file}
}

func (t *tally) Get(ctx context.Context, key string, from int64) (io.ReadCloser, store.Info, error) {
	return t.GetRange(ctx, key, store.Range{From: from})
}

func (t *tally) GetRange(ctx context.Context, key string, part store.Range) (io.ReadCloser, store.Info, error) {
	body, info, err := store.GetRange(ctx, t.Store, key, part)
	if err != nil || !strings.HasSuffix(key, ".tar.zst") {
		return body, info, err
	}
	return &talliedBody{body, t.file}, info, nil
}

type talliedBody struct {
	io.ReadCloser
	file *os.File
}

func (b *talliedBody) Read(p []byte) (int, error) {
	n, err := io.ReadFull(b.ReadCloser, p[:min(len(p), 16<<10)])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	if _, err := b.file.Write(make([]byte, (n+1023)>>10)); err != nil {
		return n, err
	}
	time.Sleep(200 * time.Microsecond)
	return n, err
}

// TestFetchKilledAtRandomMoments kills a first deploy again and again while it fetches and unpacks.
// What was verified before a kill is not fetched again, but for the blocks that were under way, and
// in the end the release is what was published.
func TestFetchKilledAtRandomMoments(t *testing.T) {
	if testing.Short() {
		t.Skip("starts an agent dozens of times")
	}
	moments := 24
	if n, err := strconv.Atoi(os.Getenv(killMoments)); err == nil {
		moments = n
	}
	storeDir := t.TempDir()
	repo := artifacttest.On(t, dir.New(storeDir))
	trustRoot := filepath.Join(t.TempDir(), "root.json")
	if err := os.WriteFile(trustRoot, repo.Root(), 0o644); err != nil {
		t.Fatal(err)
	}
	content := noise(1, 6<<20)
	release := repo.Release("myapp", "1", "testing", artifacttest.Files{"version": "1", "large": content})
	whole := interrupted(t, t.TempDir(), storeDir, trustRoot, "", time.Minute)
	for done := 0; done < moments; {
		root, log := t.TempDir(), filepath.Join(t.TempDir(), "tally")
		kills := 0
		for interrupted(t, root, storeDir, trustRoot, log, rand.N(whole+whole/4)) >= 0 {
			if kills++; kills > 4 {
				interrupted(t, root, storeDir, trustRoot, log, time.Minute)
				break
			}
		}
		done += max(kills, 1)
		got, err := os.ReadFile(filepath.Join(root, "srv/service/current/large"))
		if err != nil || string(got) != content {
			t.Fatalf("after %d kills the release holds %d bytes that are not those published, %v", kills, len(got), err)
		}
		info, err := os.Stat(log)
		if err != nil {
			t.Fatal(err)
		}
		const underWay = 4 * (256<<10 + 16<<10) // a block of each connection, and what was read of the next
		if fetched, most := info.Size()<<10, release.Length+64<<10+int64(kills)*underWay; fetched > most {
			t.Errorf("after %d kills %d bytes were fetched of an artifact of %d, want %d at most", kills, fetched, release.Length, most)
		}
		if left, err := os.ReadDir(filepath.Join(root, "var/lib/corpus/incoming")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

// interrupted runs a child and kills it after a while. It tells how long the child ran, or -1 if it
// was done before, which for a first run with much time is not an interruption.
func interrupted(t *testing.T, root, storeDir, trustRoot, log string, after time.Duration) time.Duration {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRoot+"="+root, childStore+"="+storeDir, childTrust+"="+trustRoot, childKill+"=0", childTally+"="+log)
	var said strings.Builder
	cmd.Stderr = &said
	started := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	kill.Stop()
	if err == nil && log != "" {
		return -1
	}
	if code := cmd.ProcessState.ExitCode(); code > 0 {
		t.Fatalf("an agent ended with exit code %d: %s", code, said.String())
	}
	return time.Since(started)
}
