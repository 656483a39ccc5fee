package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/machine"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// lab is a host in directory root, and a journal in another directory.
type lab struct {
	t       testing.TB
	root    string
	journal journal.Journal
}

func newLab(t testing.TB) *lab {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	return &lab{t: t, root: root, journal: journal.Journal{Dir: filepath.Join(t.TempDir(), "a", "journal"), Limit: 1 << 20,
		FileLimit: 1 << 16}}
}

// run calls work with a host whose changes are recorded in the chapter of a run of a pair.
func (l *lab) run(id, pair string, work func(h *host.Host, r *journal.Recorder)) {
	l.t.Helper()
	r := l.journal.Record(journal.Run{ID: id, Pair: ledger.Key{Bytes: pair}, Name: "myapp " + pair,
		Over: ledger.Key{Bytes: "before"}, Now: time.Now,
		Note: l.t.Logf, Skip: []string{"/skipped"}})
	h, err := machine.New(host.Options{Root: l.root, Recorder: r})
	if err != nil {
		l.t.Fatal(err)
	}
	r.Bind(h)
	work(h, r)
	if err := r.Close(); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) write(h *host.Host, path, text string) {
	l.t.Helper()
	if err := h.WriteText(path, text); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) chapters() []*journal.Chapter {
	l.t.Helper()
	all, err := l.journal.Chapters()
	if err != nil {
		l.t.Fatal(err)
	}
	return all
}

// file returns the file name of the only chapter.
func (l *lab) file() string {
	l.t.Helper()
	found, err := filepath.Glob(filepath.Join(l.journal.Dir, "*.journal"))
	if err != nil || len(found) != 1 {
		l.t.Fatalf("%d chapters, %v, want one", len(found), err)
	}
	return found[0]
}

func TestReplacedContentIsSaved(t *testing.T) {
	l := newLab(t)
	old := strings.Repeat("old ", 5000)
	if err := os.WriteFile(filepath.Join(l.root, "etc/f"), []byte(old), 0o640); err != nil {
		t.Fatal(err)
	}
	l.run("1", "a", func(h *host.Host, r *journal.Recorder) {
		r.Step("file.managed /etc/f")
		l.write(h, "/etc/f", "new")
		l.write(h, "/etc/f", "newer") // only the before-image of the first change counts
		l.write(h, "/etc/d/g", "other")
		l.write(h, "/skipped/f", "not recorded")
	})
	all := l.chapters()
	if len(all) != 1 || all[0].Pair != "a" || all[0].Over != "before" || len(all[0].Records) != 3 {
		t.Fatalf("the journal is %+v", all)
	}
	c, r := all[0], all[0].Records[0]
	before, after := r.Before.Part("/etc/f"), r.After.Part("/etc/f")
	if r.Run != "1" || r.Step != "file.managed /etc/f" || !r.Secret || before.Size != int64(len(old)) || after.Size != 5 {
		t.Errorf("the record is %+v", r)
	}
	f, err := c.Open(before.Pieces)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if data, err := io.ReadAll(f); err != nil || string(data) != old {
		t.Errorf("the before-image has %d bytes, %v, want %d", len(data), err, len(old))
	}
	if c.Records[1].Before.Part("/etc/d").Type != image.Absent ||
		c.Records[1].After.Part("/etc/d").Type != image.Directory {
		t.Errorf("the directory is recorded as %+v", c.Records[1])
	}
	info, err := os.Stat(l.file())
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() > 8<<10 {
		t.Errorf("the chapter is %v of %d bytes, %v", info.Mode(), info.Size(), err)
	}
	if dir, err := os.Stat(l.journal.Dir); err != nil || dir.Mode().Perm() != 0o700 {
		t.Errorf("the journal is %v, %v", dir.Mode(), err)
	}
}

func TestChapterPerPair(t *testing.T) {
	l := newLab(t)
	change := func(text string) func(*host.Host, *journal.Recorder) {
		return func(h *host.Host, _ *journal.Recorder) { l.write(h, "/etc/f", text) }
	}
	l.run("1", "a", change("one"))
	l.run("2", "a", func(*host.Host, *journal.Recorder) {})
	l.run("3", "a", change("three"))
	l.run("4", "b", change("four"))
	all := l.chapters()
	if len(all) != 2 || fmt.Sprint(all[0].Runs, all[1].Runs) != "[1 3] [4]" {
		t.Fatalf("the journal has %d chapters", len(all))
	}
	if err := l.journal.Prune(1); err != nil {
		t.Fatal(err)
	}
	if all = l.chapters(); len(all) != 1 || all[0].Pair != "b" {
		t.Errorf("pruning left %d chapters", len(all))
	}
}

func TestNoJournalWithoutChanges(t *testing.T) {
	l := newLab(t)
	l.run("1", "a", func(h *host.Host, _ *journal.Recorder) {
		if _, err := h.Files.Stat("/etc"); err != nil {
			t.Error(err)
		}
	})
	if _, err := os.Stat(l.journal.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a run that changed nothing created the journal: %v", err)
	}
	l.journal.Limit = 0
	l.run("2", "a", func(h *host.Host, _ *journal.Recorder) { l.write(h, "/etc/f", "x") })
	if _, err := os.Stat(l.journal.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a run with Limit 0 created the journal: %v", err)
	}
}

func TestLimits(t *testing.T) {
	l := newLab(t)
	l.journal.Limit, l.journal.FileLimit = 20<<10, 8<<10
	noise := func(n int) []byte { // content that does not compress
		b := make([]byte, n)
		for i, x := 0, uint32(1); i < n; i++ {
			x ^= x << 13
			x ^= x >> 17
			x ^= x << 5
			b[i] = byte(x)
		}
		return b
	}
	for name, size := range map[string]int{"large": 9 << 10, "a": 7 << 10, "b": 7<<10 - 1, "c": 7<<10 - 2} {
		if err := os.WriteFile(filepath.Join(l.root, "etc", name), noise(size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	replace := func(names ...string) func(*host.Host, *journal.Recorder) {
		return func(h *host.Host, _ *journal.Recorder) {
			for _, name := range names {
				l.write(h, "/etc/"+name, "x")
			}
		}
	}
	l.run("1", "a", replace("large", "a"))
	large, a := l.chapters()[0].Records[0], l.chapters()[0].Records[1]
	if !strings.Contains(large.Before.Parts[0].Lost, "larger than 8.0 KiB") || a.Before.Parts[0].Lost != "" {
		t.Errorf("the before-images are %+v and %+v", large.Before, a.Before)
	}
	l.run("2", "b", replace("b", "c"))
	all := l.chapters()
	if len(all) != 1 || all[0].Pair != "b" {
		t.Fatalf("the journal has %d chapters, want the old one removed", len(all))
	}
	for name := range map[string]int{"a": 1, "b": 1} {
		if err := os.WriteFile(filepath.Join(l.root, "etc", name), noise(6<<10), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(l.root, "etc", "b"), noise(5<<10), 0o644); err != nil {
		t.Fatal(err)
	}
	l.run("3", "b", replace("a", "b"))
	records := l.chapters()[0].Records
	if last := records[len(records)-1]; !strings.Contains(last.Before.Parts[0].Lost, "journal is full") {
		t.Errorf("over the limit the before-image is %+v", last.Before)
	}
}

// chapter returns a lab whose journal has one chapter with most kinds of frames, and the content of its file.
func chapter(t testing.TB) (*lab, []byte) {
	t.Helper()
	l := newLab(t)
	l.run("1", "a", func(h *host.Host, r *journal.Recorder) {
		l.write(h, "/etc/f", "one")
		if err := r.Settle(); err != nil {
			t.Fatal(err)
		}
		l.write(h, "/etc/g", "two")
		if err := errors.Join(r.BeforeProgram("hooks", "pre-release"), r.AfterProgram()); err != nil {
			t.Fatal(err)
		}
	})
	all := l.chapters()
	m := l.journal.Mark("2", all)
	if err := errors.Join(m.Begun(all[0].Records[1]), m.Undone("for a reason", all[0].Records[1]), m.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(l.file())
	if err != nil {
		t.Fatal(err)
	}
	return l, data
}

// TestTruncatedAnywhere truncates a chapter as a power failure does. Complete records can be read, and the next run
// appends more.
func TestTruncatedAnywhere(t *testing.T) {
	l, data := chapter(t)
	file, records := l.file(), len(l.chapters()[0].Records)
	before := 0
	for n := range data {
		tails := [][]byte{nil}
		if n%5 == 0 {
			tails = append(tails, make([]byte, 300)) // zeros that some filesystems leave
		}
		for _, tail := range tails {
			if err := os.WriteFile(file, append(bytes.Clone(data[:n]), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			all, err := l.journal.Chapters()
			if err != nil {
				t.Fatalf("truncated at byte %d of %d, with %d zeros: %v", n, len(data), len(tail), err)
			}
			if got := len(all[0].Records); got < before || got > records {
				t.Fatalf("truncated at byte %d the chapter has %d records, want %d to %d", n, got, before, records)
			}
			before = max(before, len(all[0].Records))
		}
	}
	if before != records {
		t.Errorf("after all truncations the chapter has %d records, want %d", before, records)
	}
	if err := os.WriteFile(file, data[:len(data)-5], 0o600); err != nil {
		t.Fatal(err)
	}
	l.run("3", "a", func(h *host.Host, _ *journal.Recorder) { l.write(h, "/etc/h", "three") })
	if c := l.chapters()[0]; c.Torn || len(c.Records) != records+1 {
		t.Errorf("after the next run the chapter has %d records, want %d", len(c.Records), records+1)
	}
}

func TestChangedBytesAreDetected(t *testing.T) {
	l, data := chapter(t)
	file := l.file()
	for n := range data {
		damaged := bytes.Clone(data)
		damaged[n] ^= 0x10
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := l.journal.Chapters()
		var damage *journal.Damaged
		var newer *journal.Newer
		if !errors.As(err, &damage) && !errors.As(err, &newer) {
			t.Fatalf("with byte %d changed the error is %v", n, err)
		}
		if diag.HintOf(err) == "" {
			t.Fatalf("%v has no hint", err)
		}
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	l, data := chapter(t)
	if err := os.WriteFile(l.file(), bytes.Replace(data, []byte("journal 1\n"), []byte("journal 7\n"), 1),
		0o600); err != nil {
		t.Fatal(err)
	}
	_, err := l.journal.Chapters()
	var newer *journal.Newer
	if !errors.As(err, &newer) || newer.Version != 7 {
		t.Errorf("the error is %v", err)
	}
	// A later run writes another chapter.
	l.run("9", "a", func(h *host.Host, _ *journal.Recorder) { l.write(h, "/etc/h", "x") })
	all, err := l.journal.Chapters()
	if err == nil || len(all) != 1 || all[0].Runs[0] != "9" {
		t.Errorf("after the run there are %d readable chapters, %v", len(all), err)
	}
}

// TestSettleTakesMissingImages checks that Settle takes the after-images of a killed run.
func TestSettleTakesMissingImages(t *testing.T) {
	l := newLab(t)
	r := l.journal.Record(journal.Run{ID: "1", Pair: ledger.Key{Bytes: "a"}, Now: time.Now, Note: t.Logf})
	h, err := machine.New(host.Options{Root: l.root, Recorder: r})
	if err != nil {
		t.Fatal(err)
	}
	r.Bind(h)
	l.write(h, "/etc/f", "cut")
	all := l.chapters()
	if all[0].Records[0].After != nil {
		t.Fatal("the record has an after-image before Settle")
	}
	if err := journal.Settle(l.journal, all[0], h); err != nil {
		t.Fatal(err)
	}
	if r := l.chapters()[0].Records[0]; r.After == nil || r.After.Part("/etc/f").Size != 3 || !r.Secret {
		t.Errorf("the record is %+v, want a secret one with an after-image", r)
	}
}

func TestUnwritableJournalStopsTheChange(t *testing.T) {
	l := newLab(t)
	if err := os.MkdirAll(filepath.Dir(l.journal.Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.journal.Dir, nil, 0o644); err != nil { // a file in place of the directory
		t.Fatal(err)
	}
	r := l.journal.Record(journal.Run{ID: "1", Pair: ledger.Key{Bytes: "a"}, Now: time.Now, Note: t.Logf})
	h, err := machine.New(host.Options{Root: l.root, Recorder: r})
	if err != nil {
		t.Fatal(err)
	}
	r.Bind(h)
	err = h.WriteText("/etc/f", "x")
	if err == nil || !strings.Contains(diag.HintOf(err), "undo.limit") {
		t.Errorf("the error is %v (hint: %s)", err, diag.HintOf(err))
	}
	if _, err := h.Files.Stat("/etc/f"); err == nil {
		t.Error("the file was written although its before-image was not saved")
	}
}

func TestRecordsWithHiddenTextAreSecret(t *testing.T) {
	l := newLab(t)
	l.run("1", "a", func(h *host.Host, r *journal.Recorder) {
		r.Hide(func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") })
		l.write(h, "/etc/plain", "nothing to hide")
		l.write(h, "/etc/secret", "password=hunter2")
	})
	records := l.chapters()[0].Records
	if records[0].Secret || !records[1].Secret {
		t.Errorf("the records have secret %v and %v", records[0].Secret, records[1].Secret)
	}
}

// FuzzChapter reads arbitrary bytes as a chapter.
func FuzzChapter(f *testing.F) {
	_, data := chapter(f)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte("corpus-journal 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "000001.journal"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := journal.Journal{Dir: dir, Limit: 1 << 20, FileLimit: 1 << 16}.Chapters()
		if err != nil {
			return
		}
		for _, r := range all[0].Records {
			if r.Before == nil {
				continue
			}
			for _, p := range r.Before.Parts {
				if content, err := all[0].Open(p.Pieces); err == nil {
					_, _ = io.Copy(io.Discard, content)
					_ = content.Close()
				}
			}
		}
	})
}

// TestInterruptedStep interrupts runs during a hook, after it, and after a later state.
func TestInterruptedStep(t *testing.T) {
	for name, c := range map[string]struct {
		work func(l *lab, h *host.Host, r *journal.Recorder) error
		want string
	}{
		"in the hook": {func(_ *lab, _ *host.Host, r *journal.Recorder) error {
			return r.BeforeProgram("hooks", "pre-release")
		}, "hooks pre-release"},
		"after the hook": {func(_ *lab, _ *host.Host, r *journal.Recorder) error {
			return errors.Join(r.BeforeProgram("hooks", "pre-release"), r.AfterProgram())
		}, ""},
		"in a state": {func(l *lab, h *host.Host, r *journal.Recorder) error {
			err := errors.Join(r.BeforeProgram("hooks", "pre-release"), r.AfterProgram())
			r.Step("file.managed /etc/f")
			l.write(h, "/etc/f", "two")
			return err
		}, "file.managed /etc/f"},
		"in the hooks after the states": {func(l *lab, h *host.Host, r *journal.Recorder) error {
			l.write(h, "/etc/f", "two")
			return r.BeforeProgram("hooks", "post-release")
		}, "hooks post-release"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.run("1", "a", func(h *host.Host, r *journal.Recorder) {
				if err := c.work(l, h, r); err != nil {
					t.Fatal(err)
				}
				last, err := l.journal.Last()
				if err != nil {
					t.Fatal(err)
				}
				open, since := last.OpenStep("1")
				if later, _ := last.OpenStep("2"); open != c.want || time.Since(since) > time.Minute || later != "" {
					t.Errorf("the run is in %q since %v, or %q", open, since, later)
				}
				if got := last.InterruptedStep("1", h); got != c.want {
					t.Errorf("the interrupted step is %q, want %q", got, c.want)
				}
			})
		})
	}
}

// TestPruneKeepsTheNewestChapters checks that the newest chapter stays, also if none is to be kept: the present release
// may have to be rolled back.
func TestPruneKeepsTheNewestChapters(t *testing.T) {
	for keep, want := range map[int]string{-1: "3", 0: "3", 1: "3", 2: "2 3", 3: "1 2 3", 9: "1 2 3"} {
		l := newLab(t)
		for _, pair := range []string{"a", "b", "c"} {
			l.run("run of "+pair, pair, func(h *host.Host, _ *journal.Recorder) { l.write(h, "/etc/f", pair) })
		}
		if err := l.journal.Prune(keep); err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, c := range l.chapters() {
			left = append(left, fmt.Sprint(c.Number))
		}
		if got := strings.Join(left, " "); got != want {
			t.Errorf("of three chapters, Prune(%d) keeps %s, want %s", keep, got, want)
		}
	}
}
