package site

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/grains"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Who is Identify for a host that may have had another identity before. If the name or group of a host with a deployed
// release now means another service or instance, or none, the host keeps its earlier identity until a person confirms
// the new one, and mismatch says so. A clone of an image is another machine and gets its new identity at once.
func (s *Site) Who(ctx context.Context, given grains.Identity, book *ledger.Ledger) (id grains.Identity, mismatch,
	err error) {
	id, err = s.Identify(ctx, given, book.Host)
	was := book.As
	if was == nil && err != nil && given == (grains.Identity{}) {
		forgotten, unread := s.asDeployed(book)
		if unread != nil {
			return id, nil, unread
		}
		switch was = forgotten; {
		case was == nil && book.Good != nil:
			return id, nil, s.forgot(err, book)
		case was == nil:
			return id, nil, s.unintroduced(err, book)
		}
	}
	if was == nil || book.Good == nil || was.Machine == "" && err == nil || was.Service == artifact.Base {
		return id, nil, err
	}
	switch machine, unread := s.Machine(); {
	case unread != nil:
		return id, nil, unread
	case was.Machine != machine:
		return id, nil, err
	}
	switch {
	case err != nil && given == (grains.Identity{}):
		return was.Identity(id.Domain),
			diag.Identity.Hint(fmt.Errorf("%w; this host stays %s %s, which is deployed on it", err, was.Service,
				was.Instance), "%s", diag.HintOf(err)), nil
	case err != nil || was.Is(id) || s.confirmed(id, given, book):
		return id, nil, err
	}
	mismatch = diag.Identity.Hint(
		fmt.Errorf("the name of this host means %s %s now, and %s %s is deployed on it; the host stays that until the new "+
			"identity is confirmed",
			id.Service, id.Instance, was.Service, was.Instance),
		"if it is to become %s: corpus-agent deploy %s %s; if not, give the host its name back", id.Service, id.Service,
		id.Instance)
	return was.Identity(id.Domain), mismatch, nil
}

// confirmed reports whether a person confirmed the identity that the host's name means: on the command line, in the
// configuration, or with an earlier deploy that did not finish.
func (s *Site) confirmed(now, given grains.Identity, book *ledger.Ledger) bool {
	configured := grains.Identity{Service: s.Config.Service, Instance: s.Config.Instance}
	remembered := grains.Identity{Service: book.Host.Service, Instance: book.Host.Instance}
	for _, id := range []grains.Identity{given, configured, remembered} {
		if id.Service == now.Service && id.Instance == now.Instance {
			return true
		}
	}
	return false
}

// Machine returns an ID that distinguishes this machine from others that were made of the same image; "" on a host
// without a machine ID.
func (s *Site) Machine() (string, error) {
	data, _, err := walk.Read(s.Layout.Path("/etc/machine-id"))
	id := strings.TrimSpace(string(data))
	if err != nil || len(id) != 32 {
		return "", err
	}
	sum := sha256.Sum256([]byte("corpus-agent " + id)) // the ID itself is confidential, see machine-id(5)
	return hex.EncodeToString(sum[:16]), nil
}

// asDeployed returns the identity of a host whose ledger is lost, by what is deployed on it: the service of the
// release, and the channel that names the release, or the only channel, by the metadata of the store on this host. It
// returns nil if it cannot determine one.
func (s *Site) asDeployed(book *ledger.Ledger) (*ledger.As, error) {
	if book.Good == nil {
		return nil, nil //nolint:nilnil // it is not known
	}
	release := book.Good.Service
	signature, err := trust.SignatureOf(s.Layout.Trust(), release.Project)
	if err != nil || signature == nil {
		return nil, err
	}
	channels := channelsOf(*signature, release)
	if len(channels) != 1 {
		return nil, nil //nolint:nilnil // it is not known
	}
	machine, err := s.Machine()
	return &ledger.As{Service: release.Project, Instance: channels[0], Machine: machine}, err
}

// channelsOf returns the channels that may have delivered a release: those that name it, or the only one.
func channelsOf(signature trust.Signature, release artifact.Release) (channels []string) {
	for name, pointer := range signature.Channels {
		if pointer.Version == release.Version || len(signature.Channels) == 1 {
			channels = append(channels, name)
		}
	}
	slices.Sort(channels)
	return channels
}

// unintroduced returns the error of a host that was never given an identity and cannot determine one. Its hint has the
// whole command that gives it.
func (s *Site) unintroduced(err error, book *ledger.Ledger) error {
	hint := diag.HintOf(err)
	whole := strings.Replace(hint, grains.Introduction, s.Introducing(book,
		grains.Identity{Service: "SERVICE", Instance: "INSTANCE"}), 1)
	if whole == hint {
		return err
	}
	return diag.Identity.Hint(err, "%s", whole)
}

// forgot returns the error of a host that has lost the identity that a person gave it, and whose name does not tell it.
// Such a host converges nothing, since states depend on the instance. The hint has the whole command that gives it
// back.
func (s *Site) forgot(err error, book *ledger.Ledger) error {
	release, where := book.Good.Service, ""
	if signature, unread := trust.SignatureOf(s.Layout.Trust(), release.Project); unread == nil && signature != nil {
		channels := channelsOf(*signature, release)
		if len(channels) == 0 {
			channels = slices.Sorted(maps.Keys(signature.Channels))
		}
		where = ", where INSTANCE may be " + strings.Join(channels, ", ")
	}
	return diag.Identity.Hint(
		fmt.Errorf("%w; this host has lost its identity: %s is on it, and nothing names its instance",
			err, release),
		"give the identity of this host: %s%s",
		s.Introducing(book, grains.Identity{Service: release.Project, Instance: "INSTANCE"}), where)
}

// Introducing returns the command that gives a host what it does not know: the identity id unless its service is "",
// the store, and the root of trust.
func (s *Site) Introducing(book *ledger.Ledger, id grains.Identity) string {
	command := "corpus-agent deploy"
	if id.Service != "" {
		command += " " + id.Service + " " + id.Instance
	}
	if s.Config.Store == "" && book.Host.Store == "" {
		command += " --store URL"
	}
	if introduced, err := trust.Introduced(s.Layout.Trust()); err == nil && !introduced {
		command += " --trust-root FILE"
	}
	return command
}
