package agent

import (
	"context"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains"
)

// A run in doubt continues with what is deployed: it converges it, fetches what of it was lost, and goes back
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
	if err := r.MisplacedConfiguration(); err != nil {
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

// rememberWho records who the host is, once that is what is deployed, and reports whether that is news.
func (r *run) rememberWho() (changed bool) {
	if r.Alone != "" || r.test || len(r.doubts) > 0 || r.ledger.Good == nil ||
		r.ledger.Good.Service.Project != r.identity.Service {
		return false
	}
	machine, err := r.Machine()
	if err != nil {
		r.record.Note("this run does not record the identity of the host: %v", err)
		return false
	}
	now := ledger.As{Service: r.identity.Service, Instance: r.identity.Instance, Region: r.identity.Region,
		Node: r.identity.Node, Machine: machine}
	changed = r.ledger.As == nil || *r.ledger.As != now
	r.ledger.As = &now
	return changed
}

// introduce decides who the host is, and keeps what it was given. An identity that contradicts the host's name is not
// kept, nor is what was given with it. Where the host could not find out who it is, since the cloud does not answer
// yet, a later run may.
func (r *run) introduce(ctx context.Context, given Given) error {
	err := r.identify(ctx, given.Identity)
	if err != nil && given.Identity != (grains.Identity{}) {
		return err
	}
	if kept := r.keepGiven(given); err == nil {
		err = kept
	}
	return err
}

// identify decides who the host is and remembers what was given.
func (r *run) identify(ctx context.Context, given grains.Identity) error {
	if r.Alone != "" {
		return r.identifyAlone(ctx)
	}
	id, doubt, err := r.Who(ctx, given, r.ledger)
	if err != nil {
		return err
	}
	if r.identity = id; doubt != nil {
		r.doubt(doubt)
	}
	if err := r.project.Enter(r.identity.Service); err != nil {
		return err
	}
	r.noteIdentity(given)
	return nil
}

// noteIdentity remembers who a person said the host is.
func (r *run) noteIdentity(given grains.Identity) {
	if given.Service != "" {
		h := &r.ledger.Host
		h.Service, h.Instance, h.Region, h.Node = given.Service, given.Instance, given.Region, given.Node
	}
}

// identifyAlone is identify for a project that is not the host's service. Its instance is that of the
// host, where the host has one.
func (r *run) identifyAlone(ctx context.Context) error {
	host, err := r.ReadHostLedger()
	if err != nil {
		return err
	}
	r.identity, _, err = r.Who(ctx, grains.Identity{}, host)
	if err != nil {
		// the identity of the host is unknown, and a project does not need it
		r.identity = grains.Identity{Instance: r.Config.Instance}
	}
	r.identity.Service = r.Alone
	return r.project.Enter(r.Alone)
}
