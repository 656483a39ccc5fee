package releases_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/config"
	"github.com/corpus-agent/corpus-agent/agent/connection"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/releases"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/store"
)

const states = "salt/config/states/web.sls"

// fetched returns a run that has fetched a release of shop, and the directory of the release.
func fetched(t *testing.T, files artifacttest.Files) (*releases.Run, *report.Report, ledger.Pair, string) {
	t.Helper()
	repo := artifacttest.New(t)
	release := repo.Release("shop", "1.0", "testing", files)
	c, err := config.Load(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	c.Store, c.FetchTimeout = "mem://", time.Minute
	host := &inspect.Host{Records: records.Records{Site: site.Site{Layout: layout.At(t.TempDir()), Config: c}}}
	rep, book := &report.Report{}, &ledger.Ledger{}
	record := report.Record(rep, host.Secrets())
	to := &connection.Run{
		Site: &host.Site, Ledger: book, Record: record, Save: func() error { return nil },
		OpenStore: func(string) (store.Store, error) { return repo.Store, nil },
	}
	client, err := to.Open(t.Context(), connection.Given{Root: repo.Root()})
	if err == nil {
		err = client.Refresh(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	r := &releases.Run{Host: host, ID: "1", Ledger: book, Record: record, Connection: to}
	pair := ledger.Pair{Service: release}
	if err := r.Fetch(t.Context(), client, pair); err != nil {
		t.Fatal(err)
	}
	if err := r.Intact(t.Context(), pair); err != nil {
		t.Fatal(err)
	}
	return r, rep, pair, host.LayoutOf("shop").Release(release.Dir())
}

// write replaces the content of a file.
func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestChangedCodeIsRefusedUntilItIsFetchedAgain(t *testing.T) {
	r, rep, pair, dir := fetched(t, artifacttest.Files{states: "a: {test.nop: []}\n"})
	if err := os.Chmod(filepath.Join(dir, states), 0o644); err != nil { // files of a release are read-only
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, states), "a: {cmd.run: [{name: id}]}\n")
	if err := r.Intact(t.Context(), pair); exit.Code(err) != exit.Refused || !strings.Contains(err.Error(), states) {
		t.Fatalf("with changed states: exit code %d, %v", exit.Code(err), err)
	}
	r.Test = true
	if r.Repair(t.Context(), pair) {
		t.Error("a dry run fetched the release again")
	}
	r.Test = false
	if !r.Repair(t.Context(), pair) || !r.Replaced(pair.Service) || !r.AnyReplaced() {
		t.Fatalf("not fetched again: %q", rep.Notes)
	}
	if err := r.Intact(t.Context(), pair); err != nil {
		t.Errorf("after the repair: %v", err)
	}
}

func TestLostFileIsFetchedAgainBeforeADeploy(t *testing.T) {
	r, rep, pair, dir := fetched(t, artifacttest.Files{states: "a: {test.nop: []}\n", "README": "1\n"})
	if err := os.Remove(filepath.Join(dir, states)); err != nil {
		t.Fatal(err)
	}
	if err := r.RepairBefore(t.Context(), pair, r.OnDisk(pair)); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, states)); err != nil || !strings.HasPrefix(string(got), "a:") {
		t.Errorf("%q, %v", got, err)
	}
	if !strings.Contains(strings.Join(rep.Notes, "\n"), states+" is missing; it was fetched again") {
		t.Errorf("notes %q", rep.Notes)
	}
}

func TestStatesInThePlaceOfBaseAreNoted(t *testing.T) {
	r, rep, pair, _ := fetched(t, artifacttest.Files{
		"corpus.yaml": "name: shop\n", "states/top.sls": "base: {}\n"})
	r.NoteUnread(pair)
	if notes := strings.Join(rep.Notes, "\n"); !strings.Contains(notes, "move states to salt/config/states") {
		t.Errorf("notes %q", notes)
	}
	if err := r.CheckRequirements(pair); err != nil {
		t.Error(err)
	}
}

// TestModesOfWhatWasJustUnpackedAreNotCompared changes a mode after the fetch of the same run, which is only noticed
// once a program of a release has run.
func TestModesOfWhatWasJustUnpackedAreNotCompared(t *testing.T) {
	r, _, pair, dir := fetched(t, artifacttest.Files{states: "a: {test.nop: []}\n", "README": "1\n"})
	name := filepath.Join(dir, "README")
	mode := func() os.FileMode {
		t.Helper()
		if err := r.RestoreModes(pair); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := mode(); got != 0o600 {
		t.Errorf("right after the fetch the mode became %v: all files were compared", got)
	}
	r.BeforeProgram()
	if got := mode(); got != 0o444 {
		t.Errorf("after a program ran, the mode is %v, want it restored to 0444", got)
	}
}
