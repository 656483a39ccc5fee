package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// A run in doubt goes on with what is deployed: it converges it, fetches what of it was lost, and goes back
// to it. It brings nothing new, and ends with the code and the hint of the doubt. The doubts are a damaged
// configuration, and a host whose name has changed to that of another service.

// doubt notes a reason to bring nothing new.
func (r *run) doubt(err error) {
	r.doubts = append(r.doubts, err)
	r.record.Note("%v", err)
}

// orDoubt is the error of a run, or else what it is in doubt about. orDoubt(nil) is asked before work that brings
// something new.
func (r *run) orDoubt(err error) error {
	if err != nil || len(r.doubts) == 0 {
		return err
	}
	return exit.WithCode(exit.Usage, r.doubts[0])
}

// inDoubt reports whether the run keeps what is deployed instead of a pair.
func (r *run) inDoubt(named ledger.Pair) bool {
	good := r.ledger.Runs()
	if len(r.doubts) == 0 || good == nil || r.ledger.Running != nil {
		return false
	}
	if !good.Same(named) {
		r.record.Note("%s waits until that is settled", named)
	}
	return true
}

// doubtConfiguration looks at the configuration file. With a damaged one nothing is deployed for the first
// time.
func (r *run) doubtConfiguration() error {
	var all []error
	if err := r.misplacedConfiguration(); err != nil {
		all = append(all, err)
	}
	if damaged := r.Config.File.Damaged; damaged != nil {
		all = append(all, damaged)
	}
	if len(all) > 0 && r.ledger.Runs() == nil {
		return exit.WithCode(exit.Usage, all[0])
	}
	for _, err := range all {
		r.doubt(err)
	}
	return nil
}

// misplacedConfiguration is the error of a host on which something else stands in the place of the directory of its
// configuration: its settings are those of their copy, and it has no grains and keys of its own.
func (a *Agent) misplacedConfiguration() error {
	dir := a.Layout.Configuration()
	if !walk.Misplaced(dir) {
		return nil
	}
	hint := fmt.Sprintf("move it away, and bring the directory back from a backup: mv -T %[1]s %[1]s.damaged", dir)
	if damaged := a.Config.File.Damaged; damaged != nil && damaged.Copy != "" {
		hint += fmt.Sprintf("; where there is no backup, the settings alone: mkdir %s && cp %s %s", dir, damaged.Copy, a.Layout.Config())
	}
	return diag.WithHint(fmt.Errorf("%s is no directory, so nothing of this host's own configuration, grains and keys is read", dir), "%s", hint)
}

// keepConfiguration copies a configuration file that is valid, for the day on which it is damaged.
func (r *run) keepConfiguration() {
	f := r.Config.File
	if f.Content == nil || r.test || f.Path != r.Layout.Config() {
		return
	}
	if err := r.copyConfiguration(f.Content); err != nil {
		r.record.Note("the configuration has no copy: %v", err)
	}
}

func (r *run) copyConfiguration(content []byte) error {
	path := r.Layout.ConfigCopy()
	if found, err := walk.Exists(r.Layout.Projects()); err != nil || !found {
		return err // the next run does it, when there is something that could be converged
	}
	if have, err := walk.ReadFile(path); err == nil && string(have) == string(content) {
		return nil
	}
	return durable.WriteFile(path, content, 0o600)
}

// who is Identify for a host that may have been something else before; doubt says why it stays that. A host
// on which something is deployed, and whose name or group since then says another service or instance, or
// nothing at all, stays what it was until a person confirms the new one. A clone of an image is another
// machine, and is what it is called at once.
func (a *Agent) who(ctx context.Context, given grains.Identity, book *ledger.Ledger) (id grains.Identity, doubt, err error) {
	id, err = a.Identify(ctx, given, book.Host)
	was := book.As
	if was == nil && err != nil && given == (grains.Identity{}) {
		forgotten, unread := a.asDeployed(book)
		if unread != nil {
			return id, nil, unread
		}
		if was = forgotten; was == nil && book.Good != nil {
			return id, nil, a.forgot(err, book)
		}
	}
	if was == nil || book.Good == nil || was.Machine == "" && err == nil {
		return id, nil, err
	}
	switch machine, unread := a.machine(); {
	case unread != nil:
		return id, nil, unread
	case was.Machine != machine:
		return id, nil, err
	}
	switch {
	case err != nil && given == (grains.Identity{}):
		return was.Identity(id.Domain), diag.WithHint(fmt.Errorf("%w; this host stays %s %s, which is deployed on it", err, was.Service, was.Instance), "%s", diag.HintOf(err)), nil
	case err != nil || was.Is(id) || a.confirmed(id, given, book):
		return id, nil, err
	}
	doubt = diag.WithHint(fmt.Errorf("this host is called %s %s now, and %s %s is deployed on it; it stays that until the other is confirmed",
		id.Service, id.Instance, was.Service, was.Instance),
		"if it is to become %s: corpus-agent deploy %s %s; if not, give the host its name back", id.Service, id.Service, id.Instance)
	return was.Identity(id.Domain), doubt, nil
}

// confirmed reports whether a person said that the host is what its name says: just now, in the
// configuration, or with a deploy that did not come to its end.
func (a *Agent) confirmed(now, given grains.Identity, book *ledger.Ledger) bool {
	configured := grains.Identity{Service: a.Config.Service, Instance: a.Config.Instance}
	remembered := grains.Identity{Service: book.Host.Service, Instance: book.Host.Instance}
	for _, id := range []grains.Identity{given, configured, remembered} {
		if id.Service == now.Service && id.Instance == now.Instance {
			return true
		}
	}
	return false
}

// rememberWho records who the host is, once that is what is deployed, and reports whether that is news.
func (r *run) rememberWho() (changed bool) {
	if r.alone != "" || r.test || len(r.doubts) > 0 || r.ledger.Good == nil || r.ledger.Good.Service.Project != r.identity.Service {
		return false
	}
	machine, err := r.machine()
	if err != nil {
		r.record.Note("this run does not record who the host is: %v", err)
		return false
	}
	now := ledger.As{Service: r.identity.Service, Instance: r.identity.Instance, Region: r.identity.Region, Node: r.identity.Node, Machine: machine}
	changed = r.ledger.As == nil || *r.ledger.As != now
	r.ledger.As = &now
	return changed
}

// machine tells this machine from others that were made of the same image; "" on a host without a machine ID.
func (a *Agent) machine() (string, error) {
	data, _, err := walk.Read(a.Layout.Path("/etc/machine-id"))
	id := strings.TrimSpace(string(data))
	if err != nil || len(id) != 32 {
		return "", err
	}
	sum := sha256.Sum256([]byte("corpus-agent " + id)) // the ID itself is confidential, see machine-id(5)
	return hex.EncodeToString(sum[:16]), nil
}

// asDeployed is who a host was whose ledger is lost, by what is deployed on it: the service of the release, and the channel
// that names the release, or the only one, by what this host has seen of the store. It is nil where that is not to be found out.
func (a *Agent) asDeployed(book *ledger.Ledger) (*ledger.As, error) {
	if book.Good == nil {
		return nil, nil //nolint:nilnil // it is not known
	}
	release := book.Good.Service
	signature, err := trust.SignatureOf(a.Layout.Trust(), release.Project)
	if err != nil || signature == nil {
		return nil, err
	}
	channels := channelsOf(*signature, release)
	if len(channels) != 1 {
		return nil, nil //nolint:nilnil // it is not known
	}
	machine, err := a.machine()
	return &ledger.As{Service: release.Project, Instance: channels[0], Machine: machine}, err
}

// channelsOf are the channels that may have brought a release: those that name it, or the only one.
func channelsOf(signature trust.Signature, release artifact.Release) (channels []string) {
	for name, pointer := range signature.Channels {
		if pointer.Version == release.Version || len(signature.Channels) == 1 {
			channels = append(channels, name)
		}
	}
	slices.Sort(channels)
	return channels
}

// forgot is the error of a host whose name does not say who it is, and that lost what a person said. It converges nothing,
// since states depend on the instance. The hint names the whole command that brings the host back.
func (a *Agent) forgot(err error, book *ledger.Ledger) error {
	release, where := book.Good.Service, ""
	if signature, unread := trust.SignatureOf(a.Layout.Trust(), release.Project); unread == nil && signature != nil {
		channels := channelsOf(*signature, release)
		if len(channels) == 0 {
			channels = slices.Sorted(maps.Keys(signature.Channels))
		}
		where = ", where INSTANCE may be " + strings.Join(channels, ", ")
	}
	return diag.WithHint(fmt.Errorf("%w; this host has lost who it was: %s is on it, and nothing says for which instance", err, release),
		"say who this host is: %s%s", a.introducing(book, grains.Identity{Service: release.Project, Instance: "INSTANCE"}), where)
}

// introducing is the command by which a person says everything that a host does not know: who it is, where id says that it
// has to be named, its store, and its root of trust.
func (a *Agent) introducing(book *ledger.Ledger, id grains.Identity) string {
	command := "corpus-agent deploy"
	if id.Service != "" {
		command += " " + id.Service + " " + id.Instance
	}
	if a.Config.Store == "" && book.Host.Store == "" {
		command += " --store URL"
	}
	if introduced, err := trust.Introduced(a.Layout.Trust()); err == nil && !introduced {
		command += " --trust-root FILE"
	}
	return command
}
