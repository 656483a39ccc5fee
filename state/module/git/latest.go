package git

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// latest implements git.latest: a checkout is at a revision of a remote repository.
type latest struct {
	access
	Name          string `sls:"name"` // the URL
	Target        string `sls:"target,required"`
	Rev           string `sls:"rev"`
	Branch        string `sls:"branch"` // the local branch; "" for the one that is checked out
	UpdateHead    bool   `sls:"update_head"`
	ForceCheckout bool   `sls:"force_checkout"`
	ForceClone    bool   `sls:"force_clone"`
	ForceFetch    bool   `sls:"force_fetch"`
	ForceReset    any    `sls:"force_reset"` // true, or remote-changes
	Submodules    bool   `sls:"submodules"`
	Bare          bool   `sls:"bare"`
	Mirror        bool   `sls:"mirror"`
	Remote        string `sls:"remote"`
	FetchTags     bool   `sls:"fetch_tags"`
	SyncTags      bool   `sls:"sync_tags"`
	Depth         int    `sls:"depth"`
	RefspecBranch any    `sls:"refspec_branch"` // no effect: all branches are fetched
	RefspecTag    any    `sls:"refspec_tag"`

	AllowOutsideLinks bool `sls:"allow_outside_links"`

	place  place
	commit string // "" until it is known, as for an abbreviated hash before the fetch
	kind   string
	now    now
	todo   todo
}

// now is the present state of a checkout.
type now struct {
	commit, branch, url string
	dirty               bool
	tags                []string
}

// todo holds the changes that an existing checkout needs.
type todo struct {
	remote, move, branch, reset bool
	newTags, oldTags            []string
}

func (t todo) nothing() bool {
	return !t.remote && !t.move && !t.branch && !t.reset && len(t.newTags) == 0 && len(t.oldTags) == 0
}

func (l *latest) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	var err error
	if l.place, err = placeOf(h, l.Target); err != nil {
		return module.Diff{}, err
	}
	if err = l.actFor(h, l.Target); err != nil {
		return module.Diff{}, err
	}
	if err = l.otherKind(h); err != nil {
		return module.Diff{}, err
	}
	if what, err := l.awaits(h); err != nil || what != "" {
		return module.Awaits(what, "check out "+address(l.Name)), err
	}
	found, err := l.remoteRefs(ctx, h, l.Name)
	if err != nil {
		return module.Diff{}, err
	}
	known := false
	if l.commit, l.kind, known = found.find(l.Rev); l.kind == "" || l.kind == "HEAD" && !known {
		return module.Diff{}, found.missing(l.Rev, l.Name)
	}
	switch {
	case l.place == occupied && !l.ForceClone:
		return module.Diff{}, inTheWay(h, l.Target, "force_clone")
	case l.place != checkout:
		return l.wouldClone(known), nil
	}
	return l.compare(ctx, h, found)
}

// otherKind returns an error if the target is a bare repository and a checkout is declared, or the reverse. With
// force_clone it marks the target as occupied instead, so that it is replaced.
func (l *latest) otherKind(h *host.Host) error {
	bare := l.place == checkout && bareAt(h, l.Target)
	if l.place != checkout || bare == (l.Bare || l.Mirror) {
		return nil
	}
	l.place = occupied
	if l.ForceClone {
		return nil
	}
	kind := map[bool]string{true: "a bare repository", false: "not a bare repository"}[bare]
	return host.Unsuitable(l.Target, diag.Path.Hint(fmt.Errorf("%s exists and is %s", l.Target, kind),
		"set force_clone: True to remove it, or correct bare"))
}

func (l *latest) wouldClone(known bool) module.Diff {
	d := module.Diff{Changes: l.cloning(), Comment: fmt.Sprintf("would clone %s to %s", address(l.Name), l.Target)}
	if !known { // an abbreviated hash
		return module.Diff{Unknown: true, Planned: value.NewMap(), Comment: d.Comment}
	}
	return d
}

func (l *latest) cloning() *value.Map {
	m := value.NewMap()
	if l.place == occupied {
		m.Set("forced clone", true)
	}
	m.Set("new", address(l.Name)+" => "+l.Target)
	if !l.Bare && !l.Mirror {
		m.Set("revision", value.NewMap("old", nil, "new", l.commit))
	}
	return m
}

// compare determines the changes that a checkout needs.
func (l *latest) compare(ctx context.Context, h *host.Host, found refs) (module.Diff, error) {
	if err := l.look(ctx, h); err != nil {
		return module.Diff{}, err
	}
	if l.commit == "" { // an abbreviated hash
		l.commit, _ = l.answer(ctx, h, l.Target, "rev-parse", "--verify", "--quiet", l.Rev+"^{commit}")
	}
	t := todo{remote: l.now.url != address(l.Name)}
	if l.Bare || l.Mirror {
		have, err := l.answer(ctx, h, l.Target, "rev-parse", "--verify", "--quiet", l.Rev+"^{commit}")
		if err != nil {
			return module.Diff{}, err
		}
		t.move = have != l.commit
		l.now.commit = have
	} else if l.UpdateHead {
		t.move = l.now.commit != l.commit || l.commit == ""
		t.branch = l.Branch != "" && l.Branch != l.now.branch
		t.reset = l.now.dirty && l.discards() && l.ForceReset != onRemoteChanges
	}
	if t.move && l.now.dirty && !l.discards() {
		return module.Diff{}, host.Unsuitable(l.Target,
			diag.Git.Hint(fmt.Errorf("%s would be updated, and has changes that are not committed", l.Target),
				"commit them on the host, or set force_reset: True to drop them"))
	}
	l.compareTags(&t, found)
	l.todo = t
	switch {
	case t.nothing() && l.now.dirty:
		return module.Diff{Comment: l.Target + " is at its revision, with changes that are not committed"}, nil
	case t.nothing():
		return module.Diff{Comment: l.Target + " is at its revision"}, nil
	}
	d := module.Diff{Changes: l.changes(), Unknown: l.commit == "",
		Comment: fmt.Sprintf("would bring %s to %s of %s", l.Target, l.Rev, address(l.Name))}
	if l.commit == "" {
		d.Changes, d.Planned = nil, value.NewMap()
	}
	return d, nil
}

// onRemoteChanges is the value of force_reset that discards uncommitted changes only if the remote branch has
// moved.
const onRemoteChanges = "remote-changes"

// discards reports whether an update may discard uncommitted changes.
func (l *latest) discards() bool { return value.Truth(l.ForceReset) }

func (l *latest) compareTags(t *todo, found refs) {
	if !l.FetchTags || l.Depth > 0 {
		return
	}
	for ref := range found {
		if name, ok := strings.CutPrefix(ref, "refs/tags/"); ok && !strings.HasSuffix(name, "^{}") &&
			!slices.Contains(l.now.tags, name) {
			t.newTags = append(t.newTags, name)
		}
	}
	for _, name := range l.now.tags {
		if l.SyncTags && found["refs/tags/"+name] == "" {
			t.oldTags = append(t.oldTags, name)
		}
	}
	slices.Sort(t.newTags)
}

// look reads the present state of the checkout.
func (l *latest) look(ctx context.Context, h *host.Host) error {
	var errs [5]error
	status, tags := "", ""
	l.now.commit, errs[0] = l.answer(ctx, h, l.Target, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	l.now.branch, errs[1] = l.answer(ctx, h, l.Target, "symbolic-ref", "--short", "--quiet", "HEAD")
	l.now.url, errs[2] = l.answer(ctx, h, l.Target, "config", "--get", "remote."+l.Remote+".url")
	tags, errs[3] = l.answer(ctx, h, l.Target, "tag", "--list")
	if !l.Bare && !l.Mirror {
		status, errs[4] = l.answer(ctx, h, l.Target, "status", "--porcelain", "--untracked-files=no")
	}
	l.now.dirty, l.now.tags = status != "", strings.Fields(tags)
	return ofCheckout(l.place, l.Target, cmp.Or(errs[:]...))
}

func (l *latest) changes() *value.Map {
	m, t := value.NewMap(), l.todo
	if t.remote {
		m.Set("new", address(l.Name)+" => "+l.Remote)
	}
	if t.move {
		m.Set("revision", value.NewMap("old", orNone(l.now.commit), "new", l.commit))
	}
	if t.branch {
		m.Set("local branch", value.NewMap("old", orNone(l.now.branch), "new", l.Branch))
	}
	if t.reset {
		m.Set("forced update", true)
	}
	if len(t.newTags) > 0 {
		m.Set("new_tags", value.Strings(t.newTags...))
	}
	if len(t.oldTags) > 0 {
		m.Set("deleted_tags", value.Strings(t.oldTags...))
	}
	return m
}

func orNone(s string) any {
	if s == "" {
		return nil
	}
	return s
}
