package serving

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"

	"github.com/corpus-agent/corpus-agent/agent/failure"
	"github.com/corpus-agent/corpus-agent/agent/health"
	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// This file determines whether another process listens on the ports on which a release has to respond. A release that
// cannot get its port is not at fault, and an answer from another process proves nothing.

// answering returns the check of which processes answer the probes of a pair. It is nil if the agent may not act on the
// units of this host, as below a root.
func (r *Run) answering(ctx context.Context, pair ledger.Pair, probes []recipe.Probe) (*service.Answering, error) {
	s, err := r.Host.System()
	if err != nil || s.Allowed() != nil {
		return nil, err
	}
	projects, err := r.inService(pair)
	if err != nil {
		return nil, err
	}
	members, err := service.Find(ctx, s, projects)
	if err != nil {
		return nil, failure.OfWork(err)
	}
	var units []string
	for _, m := range members {
		units = joined(units, []string{m.Unit})
	}
	for _, p := range probes {
		if p.Kind == recipe.ProbeUnit {
			units = joined(units, []string{service.FullName(p.Target)})
		}
	}
	return &service.Answering{System: s, Projects: projects, Units: units}, nil
}

// ExplainPorts adds to the error of a pair that was put into service which other process listens on a port that probes
// of the pair connect to, if one does.
func (r *Run) ExplainPorts(ctx context.Context, pair ledger.Pair, cause error) error {
	var found *service.Occupied
	var units *service.Failed
	var sick *health.Unhealthy
	var program *hook.Failed
	switch {
	case errors.As(cause, &found) || len(r.served) == 0:
		return cause
	case !errors.As(cause, &units) && !errors.As(cause, &sick) && !errors.As(cause, &program):
		return cause
	}
	wanted, err := r.wantedHealth(pair)
	if err != nil {
		return cause
	}
	answering, err := r.answering(ctx, pair, wanted.Probes)
	if err != nil || answering == nil {
		return cause
	}
	found, err = answering.Occupant(context.WithoutCancel(ctx), portsOf(wanted.Probes))
	if err != nil {
		r.Record.Note("cannot determine which process has the ports of %s: %v", pair, err)
	}
	if found == nil {
		return cause
	}
	return diag.Process.Hint(fmt.Errorf("%w; and %w", cause, found), "%s", found.Hint())
}

// portsOf lists the ports of this host that the probes of releases connect to.
func portsOf(probes []recipe.Probe) []uint16 {
	var ports []uint16
	for _, p := range probes {
		target := p.Target
		switch {
		case p.Project == "":
			continue
		case p.Kind == recipe.ProbeHTTP:
			if target = hostOf(target); target == "" {
				continue
			}
		case p.Kind != recipe.ProbeTCP:
			continue
		}
		if port := localPort(target); port != 0 && !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports
}

// hostOf returns host:port of a URL, with the port of its scheme if it names none; "" for what is not a URL.
func hostOf(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// localPort returns the port of host:port if it is an address of this host. It returns 0 for other hosts and for names
// that would have to be looked up.
func localPort(target string) uint16 {
	name, number, err := net.SplitHostPort(target)
	if err != nil {
		return 0
	}
	port, err := net.LookupPort("tcp", number)
	if err != nil {
		return 0
	}
	if own, err := os.Hostname(); name == "localhost" || name == "" || err == nil && name == own {
		return uint16(port)
	}
	addr, err := netip.ParseAddr(name)
	if err != nil || !ownAddress(addr.Unmap()) {
		return 0
	}
	return uint16(port)
}

// ownAddress reports whether an address is one of this host.
func ownAddress(a netip.Addr) bool {
	if a.IsLoopback() || a.IsUnspecified() {
		return true
	}
	all, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(all, func(own net.Addr) bool {
		prefix, err := netip.ParsePrefix(own.String())
		return err == nil && prefix.Addr().Unmap() == a
	})
}
