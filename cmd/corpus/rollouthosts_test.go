package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	hosts "github.com/corpus-agent/corpus-agent/agent/rollout"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
)

// rollingHost is a host of a channel that writes what an agent writes into the store.
type rollingHost struct {
	shell    *shell
	ref      artifact.Ref
	name     string
	key      hostkey.Key
	store    store.Store
	file     string // of its last record
	run      string // ID of its last run
	sequence int64
}

// rollingHost registers a host of a channel with a record of a version.
func (s *shell) rollingHost(name string, ref artifact.Ref, version string) *rollingHost {
	s.t.Helper()
	h := &rollingHost{shell: s, name: name, ref: ref, file: filepath.Join(s.t.TempDir(), "record.json")}
	var err error
	if h.store, err = stores.Open(s.env["CORPUS_STORE"], stores.Options{}); err != nil {
		s.t.Fatal(err)
	}
	h.newKey()
	h.record(version, nil)
	return h
}

// newKey gives the host a key and registers it, as on a machine that replaces another one.
func (h *rollingHost) newKey() {
	h.shell.t.Helper()
	var err error
	if h.key, _, err = hostkey.Open(filepath.Join(h.shell.t.TempDir(), "host.key")); err != nil {
		h.shell.t.Fatal(err)
	}
	if err := h.key.Register(h.shell.t.Context(), h.store, hostkey.Registration{Host: h.name}); err != nil {
		h.shell.t.Fatal(err)
	}
}

// record writes a record of the host with a version, after it was changed; change may be nil.
func (h *rollingHost) record(version string, change func(*hostrecord.Record)) {
	h.shell.t.Helper()
	h.sequence++
	h.run = time.Now().UTC().Format(hostrecord.RunTime)
	r := hostrecord.Record{Project: h.ref.Project, Host: h.name, Run: h.run, Form: 9,
		Sequence: h.sequence, Outcome: "converged", Agent: "dev", Service: h.place(version)}
	if change != nil {
		change(&r)
	}
	w := hostrecord.Writer{Store: h.store, Key: h.key, File: h.file, Now: time.Now()}
	if err := w.Write(h.shell.t.Context(), r, hostrecord.Detail{}); err != nil {
		h.shell.t.Fatal(err)
	}
}

// place returns a published version as records have it.
func (h *rollingHost) place(version string) *hostrecord.Place {
	h.shell.t.Helper()
	for _, r := range h.shell.releases(h.ref.Project) {
		if r.Version == version {
			return &hostrecord.Place{Channel: h.ref.Channel, Version: version, Digest: r.Digest.Short()}
		}
	}
	h.shell.t.Fatalf("%s %s is not published", h.ref.Project, version)
	return nil
}

// rollout returns the rollout of myapp/production and the evidence of its hosts.
func (s *shell) rollout(from store.Store) (hosts.Rollout, hosts.Evidence) {
	s.t.Helper()
	var status rolloutStatus
	s.json("rollout status myapp production --trust-root @keys/root.json", &status)
	ref := artifact.Ref{Project: "myapp", Channel: "production"}
	roster, _, err := hosts.FetchRoster(s.t.Context(), from, ref, *status.Start)
	if err != nil {
		s.t.Fatal(err)
	}
	r := hosts.New(ref, *status.Plan, *status.Start, roster)
	e, err := r.Read(s.t.Context(), from, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	return r, e
}

// result records the result of the host in the rollout of myapp/production.
func (h *rollingHost) result(o hosts.Outcome) {
	h.shell.t.Helper()
	r, _ := h.shell.rollout(h.store)
	run := time.Now().UTC().Format(hostrecord.RunTime)
	if err := r.Record(h.shell.t.Context(), h.store, h.key, h.name, o, run); err != nil {
		h.shell.t.Fatal(err)
	}
}

// halt records that the host found the limit of the rollout reached.
func (h *rollingHost) halt() {
	h.shell.t.Helper()
	r, e := h.shell.rollout(h.store)
	run := time.Now().UTC().Format(hostrecord.RunTime)
	if err := r.RecordHalt(h.shell.t.Context(), h.store, h.key, h.name, run, e, time.Now()); err != nil {
		h.shell.t.Fatal(err)
	}
}

// rollingStore returns a store with versions 1.0 and 1.1 of myapp, of which myapp/production names 1.0, and two hosts
// of that channel, which has a plan of one wave that halts at one failure.
func rollingStore(t *testing.T) (s *shell, a, b *rollingHost) {
	t.Helper()
	s = newStore(t)
	for _, version := range []string{"1.0", "1.1"} {
		s.artifact(version, version)
		s.expect(0, "publish myapp "+version+" @"+version+".tar.zst", "")
	}
	s.expect(0, "point myapp production 1.0", "")
	s.expect(0, "project rollout myapp production --waves 100% --halt-at 1 --agent dev", "")
	ref := artifact.Ref{Project: "myapp", Channel: "production"}
	return s, s.rollingHost("myapp-production-1", ref, "1.0"), s.rollingHost("myapp-production-2", ref, "1.0")
}

// lacks checks that the output of the last command does not have a text.
func (s *shell) lacks(text string) {
	s.t.Helper()
	if strings.Contains(s.out+s.err, text) {
		s.t.Errorf("the command says %q:\n%s%s", text, s.out, s.err)
	}
}

// age makes the records of the host older.
func (h *rollingHost) age(by time.Duration) {
	h.shell.t.Helper()
	files, err := filepath.Glob(h.shell.path("store/fleet/myapp/" + h.name + "/*"))
	for _, file := range files {
		err = errors.Join(err, os.Chtimes(file, time.Time{}, time.Now().Add(-by)))
	}
	if err != nil || len(files) == 0 {
		h.shell.t.Fatal(files, err)
	}
}
