package agent

import (
	"context"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains"
)

// A blocked run continues with the deployed releases: it converges them, fetches lost files of them, and rolls back to
// them. It deploys nothing new, and ends with the exit code and the hint of the first blocker. A damaged configuration
// is a blocker, and so is a hostname that now means another service.

// keepDeployed notes a reason to deploy nothing new.
func (r *run) keepDeployed(err error) {
	r.blockers = append(r.blockers, err)
	r.record.Note("%v", err)
}

// orBlocker returns err, or else the first blocker. Work that deploys something new calls orBlocker(nil) first.
func (r *run) orBlocker(err error) error {
	if err != nil || len(r.blockers) == 0 {
		return err
	}
	return exit.WithCode(exit.Usage, r.blockers[0])
}

// isBlocked reports whether the run keeps the deployed pair instead of deploying the named one.
func (r *run) isBlocked(named ledger.Pair) bool {
	good := r.ledger.Runs()
	if len(r.blockers) == 0 || good == nil || r.ledger.Running != nil {
		return false
	}
	if !good.Same(named) {
		r.record.Note("%s waits until that is settled", named)
	}
	return true
}

// checkConfiguration checks the configuration file. A damaged one blocks the run; it is an error if nothing was
// deployed yet.
func (r *run) checkConfiguration() error {
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
		r.keepDeployed(err)
	}
	return nil
}

// keepConfiguration copies a valid configuration file, so that later runs can use the copy if the file is damaged.
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
		return err // a later run copies it, once there is something to converge
	}
	if have, err := walk.ReadFile(path); err == nil && string(have) == string(content) {
		return nil
	}
	return durable.WriteFile(path, content, 0o600)
}

// rememberWho records the identity of the host if the service of that identity is deployed, and reports whether the
// record changed.
func (r *run) rememberWho() (changed bool) {
	if r.Alone != "" || r.test || len(r.blockers) > 0 || r.ledger.Good == nil ||
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

// introduce determines the identity of the host, and keeps what was given. An identity that contradicts the host's name
// is not kept, nor is what was given with it. If the host cannot determine its identity without a given one, since the
// cloud does not answer yet, a later run may.
func (r *run) introduce(ctx context.Context, given Given) error {
	err := r.identify(ctx, given.Identity)
	if err != nil && given.Identity != (grains.Identity{}) {
		return err
	}
	if kept := r.connection.KeepGiven(given.forStore()); err == nil {
		err = kept
	}
	return err
}

// identify finds the identity of the host and records the given one.
func (r *run) identify(ctx context.Context, given grains.Identity) error {
	if r.Alone != "" {
		return r.identifyAlone(ctx)
	}
	id, mismatch, err := r.Who(ctx, given, r.ledger)
	if err != nil {
		return err
	}
	if r.identity = id; mismatch != nil {
		r.keepDeployed(mismatch)
	}
	if err := r.project.Enter(r.identity.Service); err != nil {
		return err
	}
	r.noteIdentity(given)
	return nil
}

// noteIdentity records the identity that the command line gives.
func (r *run) noteIdentity(given grains.Identity) {
	if given.Service != "" {
		h := &r.ledger.Host
		h.Service, h.Instance, h.Region, h.Node = given.Service, given.Instance, given.Region, given.Node
	}
}

// identifyAlone is identify for a project that is not the host's service. The project has the instance of the host, if
// the host has one.
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
