package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// hand makes a draft of the one role that changes, signed by the keys at hand.
func (n *next) hand(ctx context.Context) error {
	if len(n.roles) != 1 {
		return mistake("make a draft of each, one after the other", "the change is one of %d roles, and a draft holds one", len(n.roles))
	}
	p := n.publisher
	for name, role := range n.roles {
		if name != metadata.TARGETS {
			d, err := n.draftProject(ctx, name, role)
			if err != nil {
				return err
			}
			return p.Hand(d)
		}
		from := role.Signed.Version
		version, err := p.free(ctx, name, from)
		if err != nil {
			return err
		}
		role.Signed.Version = version
		role.Signed.Expires = p.expires(p.Expiry.withDefaults().Snapshot)
		may := n.client.Delegation(name)
		good, _, err := p.atHand(name, may)
		if err != nil {
			return err
		}
		data, err := sign(role, good)
		if err != nil {
			return fmt.Errorf("signing %s: %w", name, err)
		}
		return p.Hand(&Draft{Form: draftForm, Role: name, From: from, Needs: []trust.Delegation{may}, Metadata: data})
	}
	return nil
}

// free is the first version after one that nobody has written.
func (p *Publisher) free(ctx context.Context, name string, version int64) (int64, error) {
	for {
		if version == math.MaxInt64 {
			return 0, exhausted(name)
		}
		version++
		body, _, err := p.Store.Get(ctx, trust.RoleKey(name, version), 0)
		// Where the bucket may not be listed, what is absent is forbidden.
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrForbidden) {
			return version, nil
		}
		if err != nil {
			return 0, err
		}
		_ = body.Close() // it was asked for its being there
	}
}

// handRoot makes a draft of a root that these have to sign, signed by the keys at hand.
func (p *Publisher) handRoot(root *rootRole, from int64, needs ...trust.Delegation) error {
	root.Signatures = []metadata.Signature{}
	for _, may := range needs {
		good, _, err := p.atHand(metadata.ROOT, may)
		if err != nil {
			return err
		}
		if err := addSignatures(root, good); err != nil {
			return fmt.Errorf("signing root: %w", err)
		}
	}
	data, err := root.ToBytes(false)
	if err != nil {
		return err
	}
	return p.Hand(&Draft{Form: draftForm, Role: metadata.ROOT, From: from, Needs: needs, Metadata: data})
}

// Export makes a draft of a role as it stands, to be signed again: because it expires, or because
// who signed it no longer may. verified is false for a project whose signatures do not hold, which
// wants to be read before it is signed.
func (p *Publisher) Export(ctx context.Context, role string) (d *Draft, verified bool, err error) {
	if role == metadata.SNAPSHOT || role == metadata.TIMESTAMP {
		return nil, false, mistake("`corpus refresh` signs it anew", "%s is signed by every publisher and needs no draft", role)
	}
	offline := *p
	offline.Hand = func(made *Draft) error { d = made; return nil }
	if role == metadata.ROOT {
		_, err = offline.ChangeRoot(ctx, RootChange{Renew: true})
		return d, err == nil, err
	}
	n, err := offline.lookBelow(ctx)
	if err != nil {
		return nil, false, err
	}
	content, verified, err := n.exported(ctx, role)
	if err != nil {
		return nil, false, err
	}
	n.roles[role] = content
	err = n.hand(ctx)
	return d, verified, err
}

// lookBelow reads the store as far as its signatures hold: what is to be signed again may be just what
// hosts refuse.
func (p *Publisher) lookBelow(ctx context.Context) (*next, error) {
	n, err := p.look(ctx)
	var refused *trust.Refused
	if err == nil || notAnswered(err) != nil || errors.As(err, &refused) && (refused.Check == trust.CheckClock || refused.Check == trust.CheckPin) {
		return n, err
	}
	client, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := client.Roots(ctx); err != nil {
		return nil, err
	}
	return p.onto(client, ""), nil
}

// exported is what a role says, and whether keys that may have signed it.
func (n *next) exported(ctx context.Context, role string) (*trust.Role, bool, error) {
	targets := n.client.Trusted().Targets[metadata.TARGETS]
	if role == metadata.TARGETS && targets != nil {
		return targets, true, nil
	}
	if role != metadata.TARGETS && targets == nil {
		return nil, false, diag.WithHint(errors.New("targets is not signed by keys that may, so that it cannot be told whose "+role+" is"),
			"sign targets first: `corpus export targets -o targets.draft`")
	}
	if role != metadata.TARGETS {
		content, err := n.client.Project(ctx, role)
		if err == nil {
			return n.salvaged(ctx, role, content)
		}
		if errors.Is(err, trust.ErrNoProject) || notAnswered(err) != nil || refusedBy(err, trust.CheckExpiry) {
			return content, false, err
		}
	}
	content, b, err := n.newestLeft(ctx, role)
	if err == nil && role == metadata.TARGETS {
		err = n.addKnown(b, content)
	}
	return content, false, err
}

// salvaged is a project with what is left of its versions, and whether that is all of them.
func (n *next) salvaged(ctx context.Context, project string, head *trust.Role) (*trust.Role, bool, error) {
	left, all, err := n.client.Salvage(ctx, project, head)
	if err != nil || all {
		return head, err == nil, err
	}
	return left, false, nil
}

// unverified reads the newest version of a role that snapshots have named and that is there, whoever
// signed it. Where the file in force is lost it is an older one, which takes the version of the lost one.
// Both forms of a project are asked for it.
func (n *next) unverified(ctx context.Context, name string) (*trust.Role, error) {
	role, _, err := n.newestLeft(ctx, name)
	return role, err
}

// newestLeft is unverified, and what snapshots have named.
func (n *next) newestLeft(ctx context.Context, name string) (*trust.Role, *rebuilding, error) {
	b := &rebuilding{next: n}
	var err error
	if b.versions, err = n.publisher.versions(ctx); err != nil {
		return nil, nil, err
	}
	if err := b.readNames(ctx); err != nil {
		return nil, nil, err
	}
	forms := []string{name}
	if name != metadata.TARGETS {
		forms = []string{trust.HeadRole(name), name}
	}
	highest := b.highest(forms)
	for _, look := range []func(context.Context, string, int64) (*trust.Role, error){b.namedRole, b.olderRole} {
		var newest *trust.Role
		for _, form := range forms {
			role, err := look(ctx, form, highest)
			if err != nil {
				return nil, nil, err
			}
			if role != nil && (newest == nil || role.Signed.Version > newest.Signed.Version) {
				newest = role
			}
		}
		if newest != nil {
			newest.Signed.Version = max(newest.Signed.Version, highest)
			return newest, b, nil
		}
	}
	if highest == 0 {
		return nil, nil, diag.WithHint(fmt.Errorf("nothing is left of %s", name), "restore the store's metadata from a backup")
	}
	role := metadata.Targets()
	role.Signed.Version = highest
	return role, b, nil
}

// highest is the highest version of some files that a snapshot has named; 0 where none has.
func (b *rebuilding) highest(names []string) (highest int64) {
	for _, name := range names {
		for _, meta := range b.named[name] {
			highest = max(highest, meta.Version)
		}
	}
	return highest
}

// namedRole reads the newest file of a role that a snapshot has named and that is as it was named.
func (b *rebuilding) namedRole(ctx context.Context, name string, highest int64) (*trust.Role, error) {
	for _, meta := range b.named[name] {
		if meta.Version < highest {
			break
		}
		data, _, err := b.read(ctx, name, meta)
		if err != nil {
			return nil, err
		}
		if role, err := metadata.Targets().FromBytes(data); data != nil && err == nil {
			return role, nil
		}
	}
	return nil, nil
}

// olderRole reads the newest file of a role that is there: in the store, or kept by this publisher.
func (b *rebuilding) olderRole(ctx context.Context, name string, highest int64) (*trust.Role, error) {
	var newest *trust.Role
	if kept, err := b.client.Kept(name); err != nil {
		return nil, err
	} else if role, err := metadata.Targets().FromBytes(kept); kept != nil && err == nil && (highest == 0 || role.Signed.Version <= highest) {
		newest = role
	}
	for _, version := range b.versions[name] {
		if version > highest && highest > 0 || newest != nil && newest.Signed.Version >= version { // a publisher who was interrupted left it
			continue
		}
		data, err := trust.ReadMetadata(ctx, b.publisher.Store, trust.RoleKey(name, version))
		if err := notAnswered(err); err != nil {
			return nil, err
		}
		if role, err := metadata.Targets().FromBytes(data); data != nil && err == nil && role.Signed.Version == version {
			return role, nil
		}
	}
	return newest, nil
}

// addKnown lets the projects that the snapshot names and that older targets do not delegate be signed by
// the public keys at hand: their delegation was lost with the targets that said so. It is read before it
// is signed.
func (n *next) addKnown(b *rebuilding, role *trust.Role) error {
	n.roles[metadata.TARGETS] = role
	delegated := map[string]bool{}
	if role.Signed.Delegations != nil {
		for _, d := range role.Signed.Delegations.Roles {
			delegated[d.Name] = true
		}
	}
	for _, file := range slices.Sorted(maps.Keys(b.named)) {
		project, _ := trust.IsHead(file)
		if slices.Contains(metadata.TOP_LEVEL_ROLE_NAMES[:], project) || delegated[project] || trust.CheckProject(project) != nil {
			continue
		}
		delegated[project] = true
		keys, err := n.publisher.Keys.Public(project)
		if err != nil {
			continue // its owner adds it with `corpus project add`
		}
		if err := n.delegate(project, keys); err != nil {
			return err
		}
	}
	return nil
}

// Imported says what committing a draft did.
type Imported struct {
	Role    string      `json:"role"`
	Version int64       `json:"version"`
	Store   *InitResult `json:"store,omitempty"` // a store that was set up by its first root
	Root    *RootResult `json:"root,omitempty"`  // a root that was replaced

	WithoutChunks []string `json:"without_chunks,omitempty"` // new versions whose chunks are gone: hosts fetch them whole
}

// Import commits a draft that enough people have signed. Whether they are enough is asked of the
// store, not of the draft.
func (p *Publisher) Import(ctx context.Context, d *Draft) (Imported, error) {
	s, err := d.Summary()
	if err != nil {
		return Imported{}, err
	}
	result := Imported{Role: d.Role, Version: s.Version}
	if d.Role != metadata.ROOT {
		return p.importRole(ctx, d, result)
	}
	if d.From == 0 {
		made, err := p.importFirst(ctx, d)
		result.Store = &made
		return result, err
	}
	root, err := p.importRoot(ctx, d)
	result.Root = &root
	return result, err
}

// importRole commits a draft of targets or a project, and looks whether its chunks waited for it.
func (p *Publisher) importRole(ctx context.Context, d *Draft, result Imported) (Imported, error) {
	if d.Role == metadata.TARGETS {
		if done, err := p.importTargets(ctx, d); done || err != nil {
			return result, err
		}
	}
	var fresh []artifact.Release
	err := p.change(ctx, func(n *next) (err error) {
		if err = n.take(ctx, d); err == nil {
			fresh, err = n.fresh(ctx, d)
		}
		if err == nil {
			err = p.uploaded(ctx, fresh)
		}
		return err
	})
	if err != nil {
		return result, err
	}
	if result.WithoutChunks, err = p.incomplete(ctx, d.Role, fresh); err != nil {
		return result, fmt.Errorf("%s %d is in force; whether its chunks are there cannot be told: %w", result.Role, result.Version, err)
	}
	return result, nil
}

// uploaded refuses new versions whose artifact is not in the store: hosts could not fetch them.
func (p *Publisher) uploaded(ctx context.Context, fresh []artifact.Release) error {
	for _, r := range fresh {
		missing, err := p.missing(ctx, []string{trust.ObjectKey(r)})
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			return mistake("publish the same file with --draft again, which uploads it, and sign that draft; give `corpus gc` a --drafts that is longer than signing takes",
				"the artifact of %s is not in the store, as %s: nothing was signed", r, missing[0])
		}
	}
	return nil
}

// importTargets commits a draft of targets to a store whose own targets do not hold, or whose snapshot
// does not: both snapshot and timestamp are made again around it. It reports false for any other store.
func (p *Publisher) importTargets(ctx context.Context, d *Draft) (done bool, err error) {
	err = p.retry(ctx, func() error {
		n, err := p.lookBelow(ctx)
		if done = err == nil && n.client.Trusted().Targets[metadata.TARGETS] == nil; !done {
			return err
		}
		role, err := metadata.Targets().FromBytes(d.Metadata)
		if err != nil {
			return fmt.Errorf("reading the draft of %s: %w", d.Role, err)
		}
		if err := trust.Guard(func() error { return n.client.Trusted().Root.VerifyDelegate(metadata.TARGETS, role) }); err != nil {
			return unsigned(d, n.client.Delegation(metadata.TARGETS), err)
		}
		there, err := n.unverified(ctx, metadata.TARGETS)
		if err == nil && there.Signed.Version != d.From {
			err = stale(d.Role, "the draft follows version %d of %s, and the store has %d", d.From, d.Role, there.Signed.Version)
		}
		if err != nil {
			return err
		}
		data, err := role.ToBytes(false)
		if err != nil {
			return err
		}
		_, objects, err := n.stageRebuild(ctx, data)
		if err != nil {
			return err
		}
		n.strict = true
		if err := n.rehearse(ctx, objects, true); err != nil {
			return err
		}
		if err := p.write(ctx, objects); err != nil {
			return err
		}
		return p.keep(ctx, n.client, objects)
	})
	return done, err
}

// fresh are the releases that a draft brings to its project.
func (n *next) fresh(ctx context.Context, d *Draft) ([]artifact.Release, error) {
	if d.Role == metadata.TARGETS {
		return nil, nil
	}
	role, err := d.all()
	if err != nil {
		return nil, err
	}
	releases := trust.Releases(d.Role, role)
	old, _, err := n.standing(ctx, d.Role)
	if err != nil || old == nil {
		return releases, err
	}
	if old, _, err = n.client.Salvage(ctx, d.Role, old); err != nil {
		return nil, err
	}
	before := trust.Releases(d.Role, old)
	return slices.DeleteFunc(releases, func(r artifact.Release) bool { return slices.Contains(before, r) }), nil
}

// take puts a draft into the next version of the store.
func (n *next) take(ctx context.Context, d *Draft) error {
	role, err := d.all()
	if err != nil {
		return fmt.Errorf("reading the draft of %s: %w", d.Role, err)
	}
	var current int64
	if _, meta := n.client.Current(d.Role); meta != nil {
		current = meta.Version
	}
	if current != d.From || role.Signed.Version <= current {
		return stale(d.Role, "the draft follows version %d of %s, and the store has %d", d.From, d.Role, current)
	}
	files, err := n.files(d)
	if err != nil {
		return err
	}
	if err := n.provenMoves(ctx, d.Role, role); err != nil {
		return err
	}
	n.advice = func(of string) string { // a draft of targets may take keys of a project away
		project, _, _ := strings.Cut(of, "/")
		return revokeSteps(project)(of)
	}
	n.ready[d.Role] = files
	return nil
}

// provenMoves refuses a draft that moves a channel without the proof which that requires.
func (n *next) provenMoves(ctx context.Context, project string, role *trust.Role) error {
	if project == metadata.TARGETS {
		return nil
	}
	channels, err := trust.Channels(role)
	if err != nil {
		return err
	}
	var before map[string]trust.Pointer
	if old, _, err := n.standing(ctx, project); err != nil {
		return err
	} else if old != nil {
		if before, err = trust.Channels(old); err != nil {
			return err
		}
	}
	for name, pointer := range channels {
		if was, ok := before[name]; ok && was.Digest == pointer.Digest && was.Version == pointer.Version && was.Serial == pointer.Serial {
			continue
		}
		if _, err := n.client.CheckPointer(artifact.Ref{Project: project, Channel: name}, pointer, n.publisher.now()); err != nil {
			return err
		}
	}
	return nil
}

// verify holds a role's signatures against who may sign it.
func (n *next) verify(name string, role *trust.Role) error {
	if name == metadata.TARGETS {
		return n.client.Trusted().Root.VerifyDelegate(name, role)
	}
	return n.client.Trusted().Targets[metadata.TARGETS].VerifyDelegate(name, role)
}

// unsigned says which signatures a draft lacks.
func unsigned(d *Draft, may trust.Delegation, err error) error {
	refused := &trust.Refused{Check: trust.CheckSignature, Of: "the draft of " + d.Role, By: trust.SignedBy(d.Metadata), May: may, Err: err}
	return diag.WithHint(refused, "let more of these keys' owners run `corpus sign FILE`")
}

// importFirst sets a store up under a root that several people signed.
func (p *Publisher) importFirst(ctx context.Context, d *Draft) (InitResult, error) {
	root, err := metadata.Root().FromBytes(d.Metadata)
	if err != nil {
		return InitResult{}, err
	}
	if err := trust.Guard(func() error { return root.VerifyDelegate(metadata.ROOT, root) }); err != nil {
		return InitResult{}, unsigned(d, trust.RootDelegation(root, metadata.ROOT), err)
	}
	data, err := root.ToBytes(false)
	if err != nil {
		return InitResult{}, err
	}
	return p.initWith(ctx, data)
}

// importRoot replaces the root by one that several people signed.
func (p *Publisher) importRoot(ctx context.Context, d *Draft) (RootResult, error) {
	n, err := p.readRoot(ctx)
	if err != nil {
		return RootResult{}, err
	}
	before := n.client.Trusted().Root
	root, err := metadata.Root().FromBytes(d.Metadata)
	if err != nil {
		return RootResult{}, err
	}
	if root.Signed.Version != before.Signed.Version+1 {
		return RootResult{}, stale(metadata.ROOT, "the draft is root %d, and the store has root %d", root.Signed.Version, before.Signed.Version)
	}
	for _, by := range slices.Backward([]*rootRole{root, before}) {
		if err := trust.Guard(func() error { return by.VerifyDelegate(metadata.ROOT, root) }); err != nil {
			return RootResult{}, unsigned(d, trust.RootDelegation(by, metadata.ROOT), err)
		}
	}
	data, err := root.ToBytes(false)
	if err != nil {
		return RootResult{}, err
	}
	placed := false
	return n.carryOut(ctx, before, roots{final: root, direct: rootObject(root.Signed.Version, data)}, &placed)
}
