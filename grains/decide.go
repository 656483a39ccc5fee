package grains

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Local is the region of a host of which nobody says where it is.
const Local = "local"

// Request is everything that may say who a host is. Parts that are empty are not known.
type Request struct {
	Hostname   string
	Convention Convention
	// Given was typed by somebody just now: it decides on a host that is not named by the
	// convention, and must not contradict one that is.
	Given Identity
	// Configured comes from the configuration or was given to an earlier run. It is second to Given
	// and to a hostname that conforms, which it may contradict: the host was renamed since.
	Configured Identity
	// Cloud knows what the metadata service says; nil where there is none to ask. It is asked last,
	// and never on a host that is named by the convention.
	Cloud Cloud
	// OnCloud says that this host surely runs there, so that region and node, where nobody gave
	// them, are worth asking for even though service and instance were given.
	OnCloud bool
}

// Cloud is what a cloud's metadata service knows of this host.
type Cloud interface {
	// Place returns the region in the form hostnames have, such as useast1, and the node.
	Place(ctx context.Context) (region, node string, err error)
	// Group returns the name of the auto scaling group that started this host.
	Group(ctx context.Context) (string, error)
}

// Origin is where an identity was found.
type Origin string

// The origins, in the order in which they are tried.
const (
	FromHostname Origin = "hostname"
	FromGiven    Origin = "arguments"
	FromConfig   Origin = "configuration"
	FromCloud    Origin = "instance metadata"
)

// ConflictError says that somebody gave this host another identity than its hostname does. Which of
// the two is wrong only a person can tell.
type ConflictError struct {
	Hostname string
	Part     string // service, instance, region or node
	Given    string
	Named    string // what the hostname says
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("the %s was given as %q, but hostname %s says %q", e.Part, e.Given, e.Hostname, e.Named)
}

// Decide says who this host is: by its hostname where that follows the convention; else by what was
// given or configured; else by its auto scaling group. When none of them says, it fails with a
// *MismatchError about the hostname. What was given against a conforming hostname is a
// *ConflictError.
func Decide(ctx context.Context, r Request) (Identity, Origin, error) {
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

// Check reports names that cannot be part of an identity, and a service that was given without an instance or an
// instance without a service. It asks neither the hostname nor the cloud.
func (r Request) Check() error {
	for _, who := range []struct {
		where string
		Identity
	}{{"given", r.Given}, {"configured", r.Configured}} {
		if (who.Service == "") != (who.Instance == "") {
			return fmt.Errorf("only one of service and instance is %s", who.where)
		}
		for _, name := range partNames() {
			if text := *who.part(name); text != "" && !isName(text) {
				return diag.WithHint(fmt.Errorf("the %s is %s as %q, which is no name", name, who.where, text),
					"use letters, digits, dots and dashes, start with a letter or a digit, and stay within %d", maxName)
			}
		}
	}
	return nil
}

// conflict compares only what was given: what was configured may be older than the hostname.
func (r Request) conflict(id Identity) error {
	for _, name := range partNames() {
		given, named := *r.Given.part(name), *id.part(name)
		if given != "" && named != "" && given != named {
			return diag.WithHint(&ConflictError{Hostname: r.Hostname, Part: name, Given: given, Named: named},
				"leave it out, or rename the host first")
		}
	}
	return nil
}

// placed takes service and instance from who and, on a cloud, asks where this is unless somebody
// said so. A metadata service that does not answer leaves what a host without one has.
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

// fill sets region and node to what was given or configured where they are not known.
func (r Request) fill(id Identity) Identity {
	id.Region = cmp.Or(id.Region, r.Given.Region, r.Configured.Region)
	id.Node = cmp.Or(id.Node, r.Given.Node, r.Configured.Node)
	return id
}

// complete gives every part a value.
func (r Request) complete(id Identity) Identity {
	id = r.fill(id)
	short, domain := splitHost(r.Hostname)
	id.Region, id.Node, id.Domain = cmp.Or(id.Region, Local), cmp.Or(id.Node, short, Local), domain
	return id
}

// unknownError says what each of the two that were asked answered. The hint is the hostname's.
type unknownError struct{ hostname, cloud error }

func (e *unknownError) Error() string {
	return e.hostname.Error() + "; and instance metadata does not tell: " + strings.TrimSpace(e.cloud.Error())
}

func (e *unknownError) Unwrap() []error { return []error{e.hostname, e.cloud} }
