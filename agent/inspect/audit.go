package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/manifest"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// Audit is the result of comparing a release on this host with the published one.
type Audit struct {
	Release artifact.Release  `json:"release"`
	Dir     string            `json:"dir"`
	Files   int               `json:"files"`          // entries of its list
	Signed  bool              `json:"signed"`         // the list is the one the project's key signed
	Note    string            `json:"note,omitempty"` // why it is not signed
	Changes []manifest.Change `json:"changes"`
	// Changeable are the templates and SLS files that the project's user may change, as a place and the file. Runs
	// refuse to render them.
	Changeable []string `json:"changeable,omitempty"`
	Error      string   `json:"error,omitempty"` // why it could not be compared
}

// Verify reads every file of the deployed releases and compares it with their lists, without contacting the store. It
// checks all releases before it returns. The error has the exit code exit.Refused if anything was changed.
func (h *Host) Verify(ctx context.Context) ([]Audit, error) {
	if err := h.CheckPlace(h.Layout.Projects()); err != nil {
		return nil, err
	}
	book, err := h.ReadHostLedger()
	if err != nil {
		return nil, exit.WithCode(exit.Usage, err)
	}
	if book.Runs() == nil {
		return nil, ErrNothingDeployed()
	}
	var audits []Audit
	var failures []error
	for _, release := range book.Runs().Releases() {
		audit, err := h.AuditRelease(ctx, release)
		if err != nil {
			err = fmt.Errorf("verifying %s: %w", release, err)
			audit.Error = err.Error()
			failures = append(failures, err)
		}
		audits = append(audits, audit)
	}
	return audits, worst(changed(audits), failures)
}

// changed returns the error of audits that found changes.
func changed(audits []Audit) error {
	n := 0
	for _, a := range audits {
		n += len(a.Changes)
	}
	if n == 0 {
		return nil
	}
	return exit.WithCode(exit.Refused, diag.Changed.Hint(fmt.Errorf("%s not as unpacked", diag.Count(n, "file")),
		"find out who did it (`ausearch -f FILE`, where auditd watches it); `corpus-agent deploy` repairs modes and "+
			"owners of directories, and fetches a release again that does not converge; to have it as it was at once, "+
			"remove its directory first"))
}

// worst returns the error of several releases: a change comes before a failed comparison.
func worst(changed error, failures []error) error {
	if changed != nil {
		failures = append([]error{changed}, failures...)
	}
	if len(failures) == 1 {
		return failures[0]
	}
	return errors.Join(failures...)
}

// AuditRelease compares the files of a release with its list.
func (h *Host) AuditRelease(ctx context.Context, release artifact.Release) (Audit, error) {
	audit := Audit{Release: release, Dir: h.LayoutOf(release.Project).Release(release.Dir()), Changes: []manifest.Change{}}
	data, err := walk.ReadFile(h.Layout.Tree(release.Project, release.Dir()))
	if errors.Is(err, fs.ErrNotExist) {
		return audit, exit.WithCode(exit.Refused, unlisted(release))
	}
	if err != nil {
		return audit, err
	}
	audit.Signed, audit.Note, err = h.signed(release, manifest.Digest(data))
	if err != nil {
		return audit, err
	}
	list, err := manifest.Decode(data)
	if err != nil {
		return audit, err
	}
	root, err := walk.OpenTree(audit.Dir)
	if err != nil {
		return audit, err
	}
	defer root.Close()
	audit.Files = len(list.Entries)
	says, err := h.RecipeListed(release, list)
	if err != nil {
		return audit, err
	}
	found, err := list.Audit(ctx, root, h.Comparison(says))
	if !says.WritableCode { // with it, runs render what the project's user may change
		changeable, unread := recipe.Changeable(walk.Files(audit.Dir), says.Writable)
		if unread != nil && len(found) == 0 { // with changes, the tree need not be readable: a directory may be a link now
			return audit, errors.Join(err, unread)
		}
		audit.Changeable = changeable
	}
	audit.Changes = append(append(audit.Changes, h.ImpassableBeside(release, found)...), found...)
	if len(audit.Changes) > 0 {
		h.blame(audit)
	}
	return audit, err
}

// unlisted returns the error of a release without a list of its files.
func unlisted(release artifact.Release) error {
	err := errors.New("no list of its files is on this host, so they cannot be compared with what was unpacked")
	if release.Local != "" {
		return diag.Changed.Hint(err, "it was pushed or deployed from a working tree and is not signed: "+
			"`corpus-agent project deploy %[1]s` deploys the last push again, and `corpus-agent project deploy %[1]s "+
			"--editable DIR` a working tree", release.Project)
	}
	return diag.Changed.Hint(err, "run `corpus-agent deploy`, which fetches the release again with its list")
}

// blame sets the run of this agent that made a change: the run whose journal has the path, if the change was made
// during that run. It sets none if a journal cannot be read.
func (h *Host) blame(audit Audit) {
	chapters, _ := h.Journal().Chapters()
	dir, err := filepath.EvalSymlinks(audit.Dir)
	if err != nil {
		return
	}
	for _, chapter := range chapters {
		for _, r := range chapter.Records {
			if r.Subject.Kind != host.KindFile && r.Subject.Kind != host.KindTree {
				continue
			}
			at := h.Layout.Path(r.Subject.Name)
			parent, err := filepath.EvalSymlinks(filepath.Dir(at))
			if err != nil {
				continue // it leads nowhere by now
			}
			name, err := filepath.Rel(dir, filepath.Join(parent, filepath.Base(at)))
			if err == nil && filepath.IsLocal(name) {
				h.blameRun(audit, r, name)
			}
		}
	}
}

func (h *Host) blameRun(audit Audit, r *journal.Record, name string) {
	for i, c := range audit.Changes {
		if c.Name != name && (r.Subject.Kind != host.KindTree || !strings.HasPrefix(c.Name, name+"/")) {
			continue
		}
		run, err := h.Reports().Load(r.Run)
		if err == nil && !c.Changed.Before(run.Started.Truncate(time.Second)) && !c.Changed.After(run.Ended) {
			audit.Changes[i].By = fmt.Sprintf("%s in run %s", r.Step, r.Run)
		}
	}
}

// signed compares the digest of a list with the one that the project's key signed, as far as this host knows it. If
// they differ, the disk has damaged the list, or the list was changed together with the files, or instead of them.
func (h *Host) signed(release artifact.Release, digest artifact.Digest) (ok bool, note string, err error) {
	want, note, err := h.signedTree(release)
	if err != nil || note != "" {
		return false, note, err
	}
	if want != digest {
		return false, "", exit.WithCode(exit.Refused, diag.Changed.Hint(
			fmt.Errorf("the list of its files on this host is not the one that was signed: its digest is %s, and %s was signed",
				digest, want),
			"the disk may have damaged it; `corpus-agent deploy` fetches the release again with its list"))
	}
	return true, "", nil
}

// signedTree returns the digest of the list of a release that the project's key signed, or why there is none.
func (h *Host) signedTree(release artifact.Release) (want artifact.Digest, note string, err error) {
	client, err := trust.Recall(h.Layout.Trust())
	if err == nil {
		err = client.RecallProject(release.Project)
	}
	if errors.Is(err, trust.ErrNoProject) {
		return "", fmt.Sprintf("compared with what was noted when it was unpacked: %v", err), nil
	}
	if err != nil {
		return "", "", err
	}
	want, ok := client.Tree(release)
	if !ok {
		return "", "compared with what was noted when it was unpacked; no list of its files is signed", nil
	}
	return want, "", nil
}

// DamagedList reports whether the list of the files of a release is not the one that was signed. It reports false if
// that is unknown.
func (h *Host) DamagedList(release artifact.Release) (bool, error) {
	want, note, err := h.signedTree(release)
	if err != nil || note != "" {
		return false, err
	}
	return h.HasOtherList(release, want)
}

// HasOtherList reports whether a release has a list of its files with another digest.
func (h *Host) HasOtherList(release artifact.Release, signed artifact.Digest) (bool, error) {
	data, found, err := walk.Read(h.Layout.Tree(release.Project, release.Dir()))
	return found && signed != manifest.Digest(data), err
}
