package grains

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Local is the region of a host for which no source gives one.
const Local = "local"

// Request has everything that may determine the identity of a host. Empty parts are unknown.
type Request struct {
	Hostname   string
	Convention Convention
	// Given comes from the command line of this run. It sets the identity of a host whose hostname does not follow the
	// convention, and must not contradict a hostname that does.
	Given Identity
	// Configured comes from the configuration or was given to an earlier run. Given and a hostname that follows the
	// convention take precedence over it. It may contradict the hostname: the host may have been renamed since.
	Configured Identity
	// Cloud is the metadata service; nil if there is none. Decide queries it last, and never on a host whose hostname
	// follows the convention.
	Cloud Cloud
	// OnCloud is set if this host certainly runs in the cloud. Decide then queries region and node if they were not
	// given, even if service and instance were.
	OnCloud bool
}

// Cloud is a cloud's metadata service for this host.
type Cloud interface {
	// Place returns the region in the form of hostnames, such as useast1, and the node.
	Place(ctx context.Context) (region, node string, err error)
	// Group returns the name of the auto scaling group that started this host.
	Group(ctx context.Context) (string, error)
}

// Origin is the source of an identity.
type Origin string

// The origins, in the order in which they are tried.
const (
	FromHostname Origin = "hostname"
	FromGiven    Origin = "arguments"
	FromConfig   Origin = "configuration"
	FromCloud    Origin = "instance metadata"
)

// ConflictError is the error for a given identity that contradicts the hostname. Only a person can decide which of the
// two is wrong.
type ConflictError struct {
	Hostname string
	Part     string // service, instance, region or node
	Given    string
	Named    string // part in the hostname
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("the %s was given as %q, but hostname %s says %q", e.Part, e.Given, e.Hostname, e.Named)
}

// Decide determines the identity of a host: from its hostname if that follows the convention; otherwise from the given
// or configured identity, or else from its auto scaling group. If there is none, the error is a *MismatchError about
// the hostname. If the given identity contradicts a hostname that follows the convention, the error is a
// *ConflictError. No host has base as its service.
func Decide(ctx context.Context, r Request) (Identity, Origin, error) {
	id, from, err := decide(ctx, r)
	if err != nil || id.Service != artifact.Base {
		return id, from, err
	}
	err = artifact.CheckService(id.Service)
	return Identity{}, "", diag.KeepHint(fmt.Errorf("this host is %s %s by its %s, and %w", id.Service, id.Instance, from,
		err), diag.HintOf(err))
}

// decide is Decide for any service.
func decide(ctx context.Context, r Request) (Identity, Origin, error) {
	if err := r.Check(); err != nil {
		return Identity{}, "", err
	}
	id, unnamed := Parse(r.Hostname, r.Convention)
	switch {
	case unnamed == nil:
		if err := r.conflict(id); err != nil {
			return Identity{}, "", err
		}
		return r.complete(id), FromHostname, nil
	case r.Given.Service != "":
		return r.complete(r.placed(ctx, r.Given)), FromGiven, nil
	case r.Configured.Service != "":
		return r.complete(r.placed(ctx, r.Configured)), FromConfig, nil
	case r.Cloud == nil:
		return Identity{}, "", unnamed
	}
	id, err := r.askCloud(ctx)
	if err != nil {
		return Identity{}, "", &unknownError{hostname: unnamed, cloud: err}
	}
	return r.complete(id), FromCloud, nil
}

// Check returns an error for names that cannot be part of an identity, and for a service without an instance or an
// instance without a service. It reads neither the hostname nor the cloud's metadata.
func (r Request) Check() error {
	if r.Given.Service == artifact.Base {
		return artifact.CheckService(r.Given.Service)
	}
	for _, who := range []struct {
		where string
		Identity
	}{{"given", r.Given}, {"configured", r.Configured}} {
		if (who.Service == "") != (who.Instance == "") {
			missing := "instance"
			if who.Service == "" {
				missing = "service"
			}
			return diag.Identity.Hint(fmt.Errorf("only one of service and instance is %s", who.where),
				"give the %s too, or neither: the hostname then says who this host is", missing)
		}
		for _, name := range partNames() {
			if text := *who.part(name); text != "" && !isName(text) {
				return diag.Identity.Hint(fmt.Errorf("the %s is %s as %q, which is not a name", name, who.where, text),
					"use letters, digits, dots and dashes, start with a letter or a digit, and stay within %d characters", maxName)
			}
		}
	}
	return nil
}

// conflict compares only Given with the hostname: Configured may be older than the hostname.
func (r Request) conflict(id Identity) error {
	for _, name := range partNames() {
		given, named := *r.Given.part(name), *id.part(name)
		if given != "" && named != "" && given != named {
			return diag.Identity.Hint(&ConflictError{Hostname: r.Hostname, Part: name, Given: given, Named: named},
				"leave it out, or rename the host first")
		}
	}
	return nil
}

// placed returns the service and instance of who. On a cloud, it queries region and node unless they were given. If the
// metadata service does not answer, the host gets the same values as without one.
func (r Request) placed(ctx context.Context, who Identity) Identity {
	id := r.fill(Identity{Service: who.Service, Instance: who.Instance})
	if r.Cloud != nil && r.OnCloud && (id.Region == "" || id.Node == "") {
		region, node, _ := r.Cloud.Place(ctx)
		id.Region, id.Node = cmp.Or(id.Region, region), cmp.Or(id.Node, node)
	}
	return id
}

func (r Request) askCloud(ctx context.Context) (Identity, error) {
	name, err := r.Cloud.Group(ctx)
	if err != nil {
		return Identity{}, err
	}
	group, err := ParseGroup(name, r.Convention)
	if err != nil {
		return Identity{}, err
	}
	region, node, err := r.Cloud.Place(ctx)
	if err != nil {
		return Identity{}, err
	}
	id := r.fill(Identity{Service: group.Service, Instance: group.Instance})
	id.Region, id.Node = cmp.Or(r.Given.Region, group.Region, id.Region, region), cmp.Or(id.Node, node)
	return id, nil
}

// fill sets region and node from Given or Configured if they are not known.
func (r Request) fill(id Identity) Identity {
	id.Region = cmp.Or(id.Region, r.Given.Region, r.Configured.Region)
	id.Node = cmp.Or(id.Node, r.Given.Node, r.Configured.Node)
	return id
}

// complete sets every missing part to a default.
func (r Request) complete(id Identity) Identity {
	id = r.fill(id)
	short, domain := splitHost(r.Hostname)
	id.Region, id.Node, id.Domain = cmp.Or(id.Region, Local), cmp.Or(id.Node, short, Local), domain
	return id
}

// unknownError joins the errors of the hostname and of the metadata service. The hint is the hostname's.
type unknownError struct{ hostname, cloud error }

func (e *unknownError) Error() string {
	return e.hostname.Error() + "; and instance metadata does not tell: " + strings.TrimSpace(e.cloud.Error())
}

func (e *unknownError) Unwrap() []error { return []error{e.hostname, e.cloud} }
