package fault_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/fault"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
	"github.com/corpus-agent/corpus-agent/agent/layout"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/link"
	"github.com/corpus-agent/corpus-agent/agent/records"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/retention"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state"
	"github.com/corpus-agent/corpus-agent/state/compile"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/exec"
	"github.com/corpus-agent/corpus-agent/state/host/packages"
	"github.com/corpus-agent/corpus-agent/state/python"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// host is a host with the deployed releases base 1 and shop 1.
type host struct {
	*fault.Run
	t      *testing.T
	report *report.Report
	ending bool
}

func newHost(t *testing.T) *host {
	t.Helper()
	inspected := &inspect.Host{Records: records.Records{Site: site.Site{Layout: layout.At(t.TempDir())}}}
	good, rep := pairOf("1", "1"), &report.Report{}
	book, record := &ledger.Ledger{Good: &good}, report.Record(rep, inspected.Secrets())
	h := &host{t: t, report: rep}
	h.Run = &fault.Run{Host: inspected, ID: "7", Ledger: book, Record: record, Report: rep,
		Retention: &retention.Run{Host: inspected, ID: "7", Ledger: book, Record: record},
		Ending:    func(context.Context) bool { return h.ending }}
	return h
}

func pairOf(base, service string) ledger.Pair {
	of := func(project, version string) artifact.Release {
		digest := artifact.NewDigest(sha256.Sum256([]byte(project + version)))
		return artifact.Release{Project: project, Version: version, Digest: digest}
	}
	first := of(artifact.Base, base)
	return ledger.Pair{Base: &first, Service: of("shop", service)}
}

// blamed returns what caused the failure of a pair: a release, or the kind of fault.
func (h *host) blamed(pair ledger.Pair, cause error) string {
	h.t.Helper()
	f := h.Find(h.t.Context(), pair, cause)
	if f.Cause.Error() != cause.Error() {
		h.t.Errorf("the cause is %v, want %v", f.Cause, cause)
	}
	if f.Release != nil {
		return f.Release.String()
	}
	return string(f.Of)
}

// write writes a file of a release of a pair, and returns its path on the host.
func (h *host) write(release artifact.Release, name string) string {
	h.t.Helper()
	path := filepath.Join(h.Host.LayoutOf(release.Project).Release(release.Dir()), name)
	must(h.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(h.t, os.WriteFile(path, []byte("a: {test.nop: []}\n"), 0o600))
	return h.Host.Layout.Inside(path)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// in returns an error in a file.
func in(file string) error {
	var list diag.List
	list.Add(diag.Pos{File: file, Line: 1}, "it does not work")
	return fmt.Errorf("converging: %w", list.Err())
}

// failed returns the failure of a state of an SLS file, as an engine reports it without the path of the file.
func failed(sls string) error {
	step := &compile.Step{Chunk: value.NewMap(compile.KeySLS, sls, "state", "test", "fun", "nop")}
	return &state.Failure{Count: 1, First: &exec.Result{Step: step}}
}

// The file of an error decides which of two new releases is at fault. A release that was deployed before is never at
// fault.
func TestFileOfAnErrorDecidesWhichReleaseIsAtFault(t *testing.T) {
	h := newHost(t)
	both := pairOf("2", "2")
	base := h.write(*both.Base, "states/common.sls")
	service := h.write(both.Service, "salt/config/states/app/init.sls")
	for _, c := range []struct {
		pair  ledger.Pair
		cause error
		want  string
	}{
		{both, in("/srv/base/current/states/common.sls"), "base 2"},
		{both, in("/srv/service/next/salt/config/states/myapp.sls"), "shop 2"},
		{both, in("/srv/service/next/salt/config/pillar/secrets.sls"), "shop 2"},
		{both, in(base), "base 2"},
		{both, in(service), "shop 2"},
		{both, failed("common"), "base 2"},
		{both, failed("app"), "shop 2"},
		{both, failed("of.no.file"), "shop 2"},
		{both, errors.New("a hook failed"), "shop 2"},
		{pairOf("1", "2"), in("/srv/base/current/states/common.sls"), "shop 2"},
		{pairOf("2", "1"), in("/srv/service/next/salt/config/states/myapp.sls"), "base 2"},
		{pairOf("1", "1"), in(service), string(report.FaultOfRelease)}, // no release is new
		{ledger.Pair{Base: both.Base}, in(base), "base 2"},
		{ledger.Pair{Base: both.Base}, errors.New("a hook failed"), "base 2"},
	} {
		if got := h.blamed(c.pair, c.cause); got != c.want {
			t.Errorf("%s of %s: %q is at fault, want %q", c.cause, c.pair, got, c.want)
		}
	}
	if h.InBase(both, "/srv/base/current-of-others/states/common.sls") {
		t.Error("a file outside of base counts as one of base")
	}
}

// The file that declares a state may be of another kind, or cannot be read: its path decides nevertheless.
func TestFileOfAnotherKindDecidesAsWell(t *testing.T) {
	for what, put := range map[string]func(path string) error{
		"a directory":     func(path string) error { return os.Mkdir(path, 0o755) },
		"a pipe":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a loop":          func(path string) error { return os.Symlink(filepath.Base(path), path) },
		"an unreadable":   func(path string) error { return os.WriteFile(path, nil, 0) },
		"a closed parent": func(path string) error { return os.Chmod(filepath.Dir(path), 0) },
	} {
		t.Run(what, func(t *testing.T) {
			h := newHost(t)
			both := pairOf("2", "2")
			file := h.Host.Layout.Path(h.write(*both.Base, "states/closed/common.sls"))
			must(t, os.Remove(file))
			must(t, put(file))
			want := "base 2"
			if what == "a closed parent" && os.Geteuid() == 0 {
				want = "shop 2" // for root, the file does not exist
			}
			t.Cleanup(func() { must(t, os.Chmod(filepath.Dir(file), 0o755)) }) // so that the directory can be removed
			if got := h.blamed(both, failed("closed.common")); got != want {
				t.Errorf("%q is at fault, want %q", got, want)
			}
		})
	}
}

// Errors of system calls that do not depend on the release are faults of the host, regardless of the state that reports
// them.
func TestErrorsOfTheHostAreNoFaultOfARelease(t *testing.T) {
	h := newHost(t)
	file := "/srv/service/next/salt/config/states/app.sls"
	wraps := map[string]func(error) error{
		"plain":        func(err error) error { return fmt.Errorf("reading: %w", err) },
		"a diagnostic": func(err error) error { return diag.At(diag.Pos{File: file}, "it cannot be read: %v", err) },
		"a list": func(err error) error {
			var list diag.List
			list.AddError(diag.Pos{File: file}, &os.PathError{Op: "open", Path: "x", Err: err})
			return list.Err()
		},
	}
	for name, wrap := range wraps {
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOSPC,
			syscall.EDQUOT, syscall.EROFS, syscall.EAGAIN, syscall.ESTALE, syscall.ENOSYS} {
			if got := h.blamed(pairOf("2", "2"), wrap(errno)); got != string(report.FaultOfHost) {
				t.Errorf("%v in %s: %q is at fault", errno, name, got)
			}
		}
		for _, errno := range []syscall.Errno{syscall.ENOENT, syscall.EACCES, syscall.EISDIR} {
			if got := h.blamed(pairOf("2", "2"), wrap(errno)); got != "shop 2" {
				t.Errorf("%v in %s: %q is at fault", errno, name, got)
			}
		}
	}
	busy := fmt.Errorf("pkg.installed: %w", &packages.Busy{Lock: "/var/lib/dpkg/lock", Holder: "apt-get (process 7)"})
	if got := h.blamed(pairOf("2", "2"), busy); got != string(report.FaultOfHost) {
		t.Errorf("another package manager: %q is at fault", got)
	}
}

// A python3 that is killed during a call, and the script of a package, is a fault of the host twice in a row, and then
// one of the release.
func TestThirdKillIsAFaultOfTheRelease(t *testing.T) {
	pair := pairOf("2", "2")
	script := &packages.Killed{Program: "a script", Signal: "SIGKILL", Script: true}
	for _, err := range []error{&python.Killed{Err: errors.New("killed")}, script} {
		killsOf(t, newHost(t), pair, fmt.Errorf("converging: %w", err))
	}
}

func killsOf(t *testing.T, h *host, pair ledger.Pair, cause error) {
	t.Helper()
	for _, want := range []string{"host", "host", "shop 2"} {
		if got := h.blamed(pair, cause); got != want {
			t.Errorf("%v: %q is at fault, want %q", cause, got, want)
		}
		h.Ledger.Postpone(pair, "killed", "7", time.Now(), true)
	}
	for _, other := range []error{&python.Unstarted{Err: errors.New("no python3")},
		&packages.Killed{Program: "apt", Signal: "SIGKILL"}} {
		if got := h.blamed(pair, other); got != "host" {
			t.Errorf("%v: %q is at fault", other, got)
		}
	}
	h.Ledger.Postpone(pair, "the disk is full", "8", time.Now(), false)
	h.Ledger.Postpone(pair, "killed", "9", time.Now(), true)
	if got := h.blamed(pair, cause); got != "host" {
		t.Errorf("the second kill after another failure: %q is at fault", got)
	}
}

// A full filesystem is a fault of the host when a file of the release is written to it.
func TestFullFilesystemIsAFaultOfTheHost(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	_, err = full.WriteString("data")
	if got := newHost(t).blamed(pairOf("2", "2"), fmt.Errorf("writing data: %w", err)); got != string(report.FaultOfHost) {
		t.Errorf("%v: %q is at fault", err, got)
	}
}

// A failure in a run that is ending is not a fault of a release, even if the error has a file of the release.
func TestFailureOfARunThatEndsIsAnInterruption(t *testing.T) {
	h := newHost(t)
	h.ending = true
	for _, cause := range []error{in("/srv/service/next/salt/config/states/app.sls"), syscall.ENOSPC} {
		if got := h.blamed(pairOf("2", "2"), cause); got != string(report.FaultOfInterruption) {
			t.Errorf("%v: %q is at fault", cause, got)
		}
	}
}

// After a rollback, errors and reports have the paths to which the files were moved.
func TestErrorsNameFilesWhereTheyAreAfterARollback(t *testing.T) {
	h := newHost(t)
	pair := pairOf("2", "2")
	before := map[string]link.Set{"shop": {Current: "1"}, "base": {Current: "1"}}
	h.report.Stages = []report.Stage{{Error: "/srv/base/current/states/common.sls:3: no"}}
	h.report.Notes = []string{"mine: File \"/srv/service/next/salt/config/states/_modules/mine.py\", line 3, in f"}
	cause := in("/srv/service/next/salt/config/states/app.sls")
	f := fault.Fault{Of: report.FaultOfRelease, Release: &pair.Service, Cause: cause}
	archived := "/srv/projects/shop/archives/7/" + layout.FailedTree + "/salt/config/states/app.sls:1"
	if err := h.Relocated(pair, f, before); !strings.Contains(err.Error(), archived) {
		t.Errorf("a failed release: %v, want %s", err, archived)
	}
	want := "/7/" + layout.FailedTree + "/salt/config/states/_modules/mine.py\", line 3"
	if got := h.report.Notes[0]; !strings.Contains(got, want) {
		t.Errorf("a note has %q", got)
	}
	kept := "/srv/projects/base/releases/" + pair.Base.Dir() + "/states/common.sls:3: no"
	if got := h.report.Stages[0].Error; got != kept {
		t.Errorf("the report has %q, want %q", got, kept)
	}
	f = fault.Fault{Of: report.FaultOfHost, Cause: cause}
	kept = "/srv/projects/shop/releases/" + pair.Service.Dir() + "/salt/config/states/app.sls:1"
	if err := h.Relocated(pair, f, before); !strings.Contains(err.Error(), kept) {
		t.Errorf("a failed host: %v, want %s", err, kept)
	}
}
