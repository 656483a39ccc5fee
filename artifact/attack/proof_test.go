package attack_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/drafts"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/publish/projects"
	"github.com/corpus-agent/corpus-agent/artifact/publish/proofs"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/tuf"
)

var (
	testing_   = artifact.Ref{Project: "myapp", Channel: "testing"}
	production = artifact.Ref{Project: "myapp", Channel: "production"}
	tested     = trust.Requirement{From: "testing", Hosts: 2, Fresh: 7, Holds: 90}
)

// guarded returns a store whose myapp/production requires proof of two hosts of testing, with version 1 promoted, and a
// host of production that has read it.
func guarded(t *testing.T) (*artifacttest.Repo, *artifacttest.Host, artifact.Release) {
	t.Helper()
	repo := artifacttest.New(t)
	repo.Release("base", "1", "testing", app("base"))
	one := repo.Release("myapp", "1", "testing", app("one"))
	letAttest(t, repo)
	if _, err := projects.Require(t.Context(), repo.Publisher, production, &tested); err != nil {
		t.Fatal(err)
	}
	attest(t, repo, testing_, one, time.Now())
	promote(t, repo)
	host := repo.Host()
	takes(t, host, "1")
	return repo, host, one
}

func letAttest(t *testing.T, repo *artifacttest.Repo) {
	t.Helper()
	if _, err := repo.Keys.New(trust.AttestationRole, 1); err != nil {
		t.Fatal(err)
	}
	keys, err := repo.Keys.Public(trust.AttestationRole)
	if err != nil {
		t.Fatal(err)
	}
	if err := projects.Add(t.Context(), repo.Publisher, trust.AttestationRole, 0, keys...); err != nil {
		t.Fatal(err)
	}
}

// attest attests with only the attestation key that two hosts reported a release healthy.
func attest(t *testing.T, repo *artifacttest.Repo, ref artifact.Ref, r artifact.Release, now time.Time) {
	t.Helper()
	p := repo.As(trust.AttestationRole)
	p.Now = func() time.Time { return now }
	if _, err := attestBy(t, p, ref, r, reports(now, "a", "b")); err != nil {
		t.Fatal(err)
	}
}

func attestBy(t *testing.T, p *publish.Publisher, ref artifact.Ref, r artifact.Release,
	hosts []trust.Healthy) (proofs.Attested, error) {
	t.Helper()
	about, err := proofs.Prepare(t.Context(), p, ref, r.Version)
	if err != nil {
		t.Fatal(err)
	}
	return proofs.Attest(t.Context(), p, about, hosts)
}

func reports(at time.Time, hosts ...string) (list []trust.Healthy) {
	for _, h := range hosts {
		list = append(list, trust.Healthy{Host: h, Run: "run-" + h, At: at.UTC().Truncate(time.Second)})
	}
	return list
}

func promote(t *testing.T, repo *artifacttest.Repo) {
	t.Helper()
	if _, err := releases.Promote(t.Context(), repo.As("myapp", "snapshot", "timestamp"), "myapp", "testing",
		"production"); err != nil {
		t.Fatal(err)
	}
}

// takes checks that the channel of a host of production names a version.
func takes(t *testing.T, host *artifacttest.Host, version string) {
	t.Helper()
	if r, err := host.Resolve("myapp/production"); err != nil || r.Version != version {
		t.Fatalf("production is %v, %v; want %s", r, err, version)
	}
}

// pointed makes an attacker with the project's key and the online keys point production at a release, with a proof.
// Only a host can prevent that.
func pointed(t *testing.T, repo *artifacttest.Repo, r artifact.Release, proof []byte) {
	t.Helper()
	repo.Forger("myapp", "snapshot", "timestamp").Forge(func(f *artifacttest.Forged) {
		role := f.Roles["myapp"]
		channels, err := trust.Channels(role)
		if err != nil {
			t.Fatal(err)
		}
		channels["production"] = trust.Pointer{Version: r.Version, Digest: r.Digest,
			Serial: channels["production"].Serial + 1, Proof: proof}
		if err := trust.SetChannels(role, channels); err != nil {
			t.Fatal(err)
		}
		role.Signed.Version++
	})
}

// signedProof returns a proof of a release, changed by edit and signed with these keys.
func signedProof(t *testing.T, r artifact.Release, keys []keyring.Key,
	edit func(*trust.Attestation, *time.Time)) []byte {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Second)
	a := trust.Attestation{Project: "myapp", Channel: "testing", Version: r.Version, Digest: r.Digest, At: now,
		Hosts: reports(now, "a", "b")}
	expires := now.AddDate(0, 0, 90)
	edit(&a, &expires)
	role, err := trust.NewProof(a, expires)
	if err != nil {
		t.Fatal(err)
	}
	role.Signatures = []tuf.Signature{}
	for _, k := range keys {
		if _, err := artifacttest.Sign(role, k); err != nil {
			t.Fatal(err)
		}
	}
	data, err := role.ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestPromotionWithoutProof simulates an attacker with the project's key and the online keys who points production at a
// release that was never healthy on testing.
func TestPromotionWithoutProof(t *testing.T) {
	days := func(n int) time.Time { return time.Now().UTC().AddDate(0, 0, n).Truncate(time.Second) }
	type edit = func(*trust.Attestation, *time.Time)
	for name, c := range map[string]struct {
		edit edit
		keys string // role whose keys sign it; attestation by default
		says string
	}{
		"none": {says: "carries none"},
		"another digest": {edit: func(a *trust.Attestation, _ *time.Time) {
			a.Digest = artifact.NewDigest([32]byte{1})
		}, says: "its digest is"},
		"another version": {edit: func(a *trust.Attestation, _ *time.Time) {
			a.Version = "1"
		}, says: "its version is 1, not 2"},
		"another channel": {edit: func(a *trust.Attestation, _ *time.Time) {
			a.Channel = "nightly"
		}, says: "its channel is nightly, not testing"},
		"the same channel": {edit: func(a *trust.Attestation, _ *time.Time) {
			a.Channel = "production"
		}, says: "its channel is production, not testing"},
		"another project": {edit: func(a *trust.Attestation, _ *time.Time) {
			a.Project = "base"
		}, says: "its project is base, not myapp"},
		"no hosts": {edit: func(a *trust.Attestation, _ *time.Time) {
			a.Hosts = nil
		}, says: "it names 0 hosts, and 2 are required"},
		"one host": {edit: func(a *trust.Attestation, _ *time.Time) {
			a.Hosts = a.Hosts[:1]
		}, says: "it names 1 host, and 2 are required"},
		"one host twice": {edit: func(a *trust.Attestation, _ *time.Time) {
			a.Hosts[1] = a.Hosts[0]
		}, says: "it names 1 host, and 2 are required"},
		"hosts without names": {edit: func(a *trust.Attestation, _ *time.Time) {
			a.Hosts[0].Host = ""
		}, says: "it names 1 host, and 2 are required"},
		"old reports": {edit: func(a *trust.Attestation, _ *time.Time) {
			a.Hosts[0].At = days(-8)
		}, says: "it names 1 host, and 2 are required"},
		"reports from the future": {edit: func(a *trust.Attestation, _ *time.Time) {
			a.Hosts[0].At = days(1)
		}, says: "it names 1 host, and 2 are required"},
		"expired": {edit: func(_ *trust.Attestation, until *time.Time) { *until = days(-1) }, says: "it expired at"},
		"from the future": {edit: func(a *trust.Attestation, _ *time.Time) {
			a.At = days(1)
			a.Hosts = reports(a.At, "a", "b")
		}, says: "it says that it was made at"},
		"without a signature":            {keys: "nobody", says: "attestation has 0 valid signatures"},
		"signed with the project's key":  {keys: "myapp", says: "attestation has 0 valid signatures"},
		"signed with the targets key":    {keys: "targets", says: "attestation has 0 valid signatures"},
		"signed with the attacker's key": {keys: "own", says: "attestation has 0 valid signatures"},
	} {
		t.Run(name, func(t *testing.T) {
			repo, host, _ := guarded(t)
			two := repo.Release("myapp", "2", "testing", app("two"))
			var keys []keyring.Key
			switch c.keys {
			case "nobody":
			case "own":
				keys = repo.Forger().Keys(trust.AttestationRole)
			case "":
				keys = repo.Forger(trust.AttestationRole).Keys(trust.AttestationRole)
			default:
				keys = repo.Forger(c.keys).Keys(c.keys)
			}
			var proof []byte
			if name != "none" {
				if c.edit == nil {
					c.edit = func(*trust.Attestation, *time.Time) {}
				}
				proof = signedProof(t, two, keys, c.edit)
			}
			pointed(t, repo, two, proof)
			for _, h := range []*artifacttest.Host{host, repo.Host()} {
				_, err := h.Resolve("myapp/production")
				refused(t, err, trust.CheckProof, "myapp/production")
				if !strings.Contains(err.Error(), c.says) {
					t.Errorf("%v does not contain %q", err, c.says)
				}
			}
			sees(t, host, "2") // testing has no requirement
		})
	}
	t.Run("good", func(t *testing.T) { // everything else is valid
		repo, host, _ := guarded(t)
		two := repo.Release("myapp", "2", "testing", app("two"))
		pointed(t, repo, two, signedProof(t, two, repo.Forger(trust.AttestationRole).Keys(trust.AttestationRole),
			func(*trust.Attestation, *time.Time) {}))
		takes(t, host, "2")
	})
}

// TestPromoteRefusesWhatHostsRefuse checks that the programs of publishers refuse changes that hosts would refuse.
func TestPromoteRefusesWhatHostsRefuse(t *testing.T) {
	repo, _, _ := guarded(t)
	two := repo.Release("myapp", "2", "testing", app("two"))
	team := repo.As("myapp", "snapshot", "timestamp")
	try := func(name string, do func() error) {
		t.Helper()
		before := repo.Object(trust.TimestampKey)
		refused(t, do(), trust.CheckProof, "myapp/production")
		if string(before) != string(repo.Object(trust.TimestampKey)) {
			t.Errorf("%s changed the store", name)
		}
	}
	move := func() error {
		_, err := releases.Promote(t.Context(), team, "myapp", "testing", "production")
		return err
	}
	try("promote", move)
	file := filepath.Join(t.TempDir(), "two.tar.zst")
	if err := os.WriteFile(file, artifacttest.Archive(t, app("two")), 0o644); err != nil {
		t.Fatal(err)
	}
	try("publish", func() error {
		_, err := releases.Publish(t.Context(), team, releases.Request{Project: "myapp", Version: "2", File: file,
			Channel: "production"})
		return err
	})
	// Any user who may write below attestations/ can replace the proof.
	key := trust.ProofKey("myapp", "testing", two.Digest)
	repo.Replace(key, signedProof(t, two, repo.Forger().Keys(trust.AttestationRole),
		func(*trust.Attestation, *time.Time) {}))
	try("promote by a forged proof", move)
	repo.Replace(key, []byte("{"))
	try("promote by nonsense", move)
	// A draft of an older program without requirements.
	var draft *publish.Draft
	team.Hand = func(d *publish.Draft) error { draft = d; return nil }
	attest(t, repo, testing_, two, time.Now())
	if err := move(); err != nil {
		t.Fatal(err)
	}
	team.Hand = nil
	draft.Form, draft.Metadata, draft.Whole, draft.Pages = 1, withoutProofs(t, repo, draft.Whole), nil, nil
	try("import", func() error { _, err := drafts.Import(t.Context(), repo.Publisher, draft); return err })
	if err := move(); err != nil {
		t.Error(err)
	}
}

// withoutProofs removes the proofs from a project's metadata, and signs it again.
func withoutProofs(t *testing.T, repo *artifacttest.Repo, data []byte) json.RawMessage {
	t.Helper()
	role, err := tuf.Decode[tuf.TargetsType](data)
	if err != nil {
		t.Fatal(err)
	}
	channels, err := trust.Channels(role)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range channels {
		p.Proof = nil
		channels[name] = p
	}
	if err := trust.SetChannels(role, channels); err != nil {
		t.Fatal(err)
	}
	role.Signatures = []tuf.Signature{}
	for _, k := range repo.Forger("myapp").Keys("myapp") {
		if _, err := artifacttest.Sign(role, k); err != nil {
			t.Fatal(err)
		}
	}
	signed, err := role.ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// TestRemovalOfRequirementIsRefused simulates attackers with more and more keys who try to remove the requirement of
// production.
func TestRemovalOfRequirementIsRefused(t *testing.T) {
	t.Run("in the project's own metadata", func(t *testing.T) {
		repo, host, _ := guarded(t)
		two := repo.Release("myapp", "2", "testing", app("two"))
		pointed(t, repo, two, nil)
		repo.Forger("myapp", "snapshot", "timestamp").Forge(func(f *artifacttest.Forged) {
			role := f.Roles["myapp"]
			if err := trust.SetRequirements(role, map[string]trust.Requirement{}); err != nil {
				t.Fatal(err)
			}
			role.Signed.Version++
		})
		_, err := host.Resolve("myapp/production")
		refused(t, err, trust.CheckProof, "myapp/production")
	})
	t.Run("in targets, without its key", func(t *testing.T) {
		repo, host, _ := guarded(t)
		repo.Forger("myapp", "snapshot", "timestamp").Forge(func(f *artifacttest.Forged) {
			role := f.Roles["targets"]
			if err := trust.SetRequirements(role, map[string]trust.Requirement{}); err != nil {
				t.Fatal(err)
			}
			role.Signed.Version++
		})
		_, err := host.Resolve("myapp/production")
		refused(t, err, trust.CheckSignature, "targets.json")
	})
	t.Run("with the targets of before", func(t *testing.T) {
		repo, host, _ := guarded(t)
		repo.Forger("myapp", "snapshot", "timestamp").Forge(func(f *artifacttest.Forged) {
			meta := f.Snapshot.Signed.Meta["targets.json"]
			meta.Version--
			meta.Length, meta.Hashes = 0, nil
		})
		_, err := host.Resolve("myapp/production")
		refused(t, err, trust.CheckVersion, "snapshot.json")
	})
	t.Run("with good programs and the project's key", func(t *testing.T) {
		repo, host, _ := guarded(t)
		if _, err := projects.Require(t.Context(), repo.As("myapp", "snapshot", "timestamp"), production, nil); err == nil ||
			!strings.Contains(err.Error(), "targets") {
			t.Errorf("without the targets key the requirement is removed: %v", err)
		}
		pointed(t, repo, repo.Release("myapp", "2", "testing", app("two")), nil)
		_, err := host.Resolve("myapp/production")
		refused(t, err, trust.CheckProof, "myapp/production")
	})
	t.Run("an empty requirement", func(t *testing.T) { // as a careless or newer program writes it
		repo, host, _ := guarded(t)
		repo.Forger("targets", "snapshot", "timestamp").Forge(func(f *artifacttest.Forged) {
			role := f.Roles["targets"]
			if err := trust.SetRequirements(role, map[string]trust.Requirement{production.String(): {}}); err != nil {
				t.Fatal(err)
			}
			role.Signed.Version++
		})
		_, err := host.Resolve("myapp/production")
		refused(t, err, trust.CheckForm, "targets.json")
	})
}

// TestProofReplayed uses a proof that was valid earlier.
func TestProofReplayed(t *testing.T) {
	t.Run("of an earlier release, on a host that has seen a newer proof", func(t *testing.T) {
		repo, host, one := guarded(t)
		old := repo.Object(trust.ProofKey("myapp", "testing", one.Digest))
		two := repo.Release("myapp", "2", "testing", app("two"))
		attest(t, repo, testing_, two, time.Now().Add(2*time.Second))
		promote(t, repo)
		takes(t, host, "2")
		pointed(t, repo, one, old)
		_, err := host.Resolve("myapp/production")
		refused(t, err, trust.CheckProof, "myapp/production")
		if !strings.Contains(err.Error(), "this host has seen one of") {
			t.Errorf("error is %v", err)
		}
	})
	t.Run("by a good program, which refuses it before hosts do", func(t *testing.T) {
		repo, _, one := guarded(t)
		two := repo.Release("myapp", "2", "testing", app("two"))
		attest(t, repo, testing_, two, time.Now().Add(2*time.Second))
		promote(t, repo)
		repo.Release("myapp", "1", "testing", app("one"))
		_, err := releases.Promote(t.Context(), repo.Publisher, "myapp", "testing", "production")
		if err == nil || !strings.Contains(err.Error(), "is older than the one that myapp/production carries") {
			t.Errorf("a promotion with an old proof: %v", err)
		}
		attest(t, repo, testing_, one, time.Now().Add(3*time.Second))
		promote(t, repo)
		takes(t, repo.Host(), "1")
	})
	t.Run("after it expired", func(t *testing.T) {
		repo, _, one := guarded(t)
		old := signedProof(t, one, repo.Forger(trust.AttestationRole).Keys(trust.AttestationRole),
			func(a *trust.Attestation, until *time.Time) {
				a.At = a.At.AddDate(0, 0, -91)
				a.Hosts = reports(a.At, "a", "b")
				*until = a.At.AddDate(0, 0, 90)
			})
		pointed(t, repo, one, old)
		_, err := repo.Host().Resolve("myapp/production")
		refused(t, err, trust.CheckProof, "myapp/production")
	})
	t.Run("as another channel's", func(t *testing.T) {
		repo, host, one := guarded(t)
		if _, err := projects.Require(t.Context(), repo.Publisher, artifact.Ref{Project: "myapp", Channel: "gold"},
			&trust.Requirement{From: "production", Hosts: 1, Fresh: 7, Holds: 90}); err != nil {
			t.Fatal(err)
		}
		proof := repo.Object(trust.ProofKey("myapp", "testing", one.Digest))
		repo.Forger("myapp", "snapshot", "timestamp").Forge(func(f *artifacttest.Forged) {
			channels, err := trust.Channels(f.Roles["myapp"])
			if err != nil {
				t.Fatal(err)
			}
			channels["gold"] = trust.Pointer{Version: "1", Digest: one.Digest, Serial: 1, Proof: proof}
			if err := trust.SetChannels(f.Roles["myapp"], channels); err != nil {
				t.Fatal(err)
			}
			f.Roles["myapp"].Signed.Version++
		})
		_, err := host.Resolve("myapp/gold")
		refused(t, err, trust.CheckProof, "myapp/gold")
		takes(t, host, "1")
	})
}

// TestAttestationKeyRotatedAndRevoked checks a host during a rotation, and after a theft.
func TestAttestationKeyRotatedAndRevoked(t *testing.T) {
	t.Run("rotated", func(t *testing.T) {
		repo, host, one := guarded(t)
		stolen := repo.Forger(trust.AttestationRole).Keys(trust.AttestationRole)
		if _, err := roots.Rotate(t.Context(), repo.Publisher, trust.AttestationRole, repo.Aside()); err != nil {
			t.Fatal(err)
		}
		takes(t, host, "1")
		takes(t, repo.Host(), "1")
		pointed(t, repo, one, signedProof(t, one, stolen, func(*trust.Attestation, *time.Time) {}))
		_, err := host.Resolve("myapp/production")
		refused(t, err, trust.CheckProof, "myapp/production")
	})
	t.Run("rotated without the project's key", func(t *testing.T) {
		repo, host, _ := guarded(t)
		operations := repo.As(trust.AttestationRole, "targets", "snapshot", "timestamp")
		next := repo.Aside()
		_, err := roots.Rotate(t.Context(), operations, trust.AttestationRole, next)
		if err == nil || !strings.Contains(err.Error(), "the old key stays") {
			t.Fatalf("rotating while a channel has a proof of the old key: %v", err)
		}
		takes(t, host, "1")
		if _, err := releases.Promote(t.Context(), repo.As("myapp", "snapshot", "timestamp"), "myapp", "production",
			"production"); err != nil {
			t.Fatal(err)
		}
		takes(t, host, "1")
		if _, err := roots.Rotate(t.Context(), operations, trust.AttestationRole, next); err != nil {
			t.Fatal(err)
		}
		takes(t, host, "1")
		takes(t, repo.Host(), "1")
	})
	t.Run("a forged proof is not signed again by a rotation", func(t *testing.T) {
		repo, host, one := guarded(t)
		forged := signedProof(t, one, repo.Forger().Keys(trust.AttestationRole), func(*trust.Attestation, *time.Time) {})
		good := repo.Forger(trust.AttestationRole).Keys(trust.AttestationRole)[0].ID
		own := repo.Forger().Keys(trust.AttestationRole)[0].ID
		forged = []byte(strings.ReplaceAll(string(forged), own, good))
		pointed(t, repo, one, forged)
		if _, err := roots.Rotate(t.Context(), repo.Publisher, trust.AttestationRole, repo.Aside()); err != nil {
			t.Fatal(err)
		}
		_, err := host.Resolve("myapp/production")
		refused(t, err, trust.CheckProof, "myapp/production")
		if _, err := proofs.Renew(t.Context(), repo.Publisher, testing_); err == nil {
			t.Error("a forged proof was signed again")
		}
	})
	t.Run("revoked", func(t *testing.T) {
		repo, host, one := guarded(t)
		stolen := repo.Forger(trust.AttestationRole).Keys(trust.AttestationRole)
		other := keyring.Ring{Dir: t.TempDir()}
		if _, err := other.New(trust.AttestationRole, 1); err != nil {
			t.Fatal(err)
		}
		keys, err := other.Public(trust.AttestationRole)
		if err != nil {
			t.Fatal(err)
		}
		if err := projects.Add(t.Context(), repo.Publisher, trust.AttestationRole, 0, keys...); err != nil {
			t.Fatal(err)
		}
		var unaccepted *publish.Unaccepted
		if _, err := projects.Revoke(t.Context(), repo.Publisher, trust.AttestationRole, stolen[0].ID); !errors.As(err,
			&unaccepted) || unaccepted.Of != "myapp/production" {
			t.Fatalf("revoking the key of production's proof: %v, want it refused", err)
		}
		takes(t, host, "1")
		repo.AtOnce = true
		result, err := projects.Revoke(t.Context(), repo.Publisher, trust.AttestationRole, stolen[0].ID)
		repo.AtOnce = false
		if err != nil || len(result.Refused) != 1 || result.Refused[0] != "myapp/production" {
			t.Fatalf("revoking returns %+v, %v", result, err)
		}
		_, err = host.Resolve("myapp/production")
		refused(t, err, trust.CheckProof, "myapp/production")
		attester := repo.As(trust.AttestationRole)
		attester.Keys = other
		if _, err := attestBy(t, attester, testing_, one, reports(time.Now(), "a", "b")); err != nil {
			t.Fatal(err)
		}
		promote(t, repo)
		takes(t, host, "1")
	})
}

// TestProofsUnderAThreshold requires two people to attest.
func TestProofsUnderAThreshold(t *testing.T) {
	repo, host, _ := guarded(t)
	bob := keyring.Ring{Dir: t.TempDir()}
	if _, err := bob.New(trust.AttestationRole, 1); err != nil {
		t.Fatal(err)
	}
	keys, err := bob.Public(trust.AttestationRole)
	if err != nil {
		t.Fatal(err)
	}
	repo.AtOnce = true
	if err := projects.Add(t.Context(), repo.Publisher, trust.AttestationRole, 2, keys...); err != nil {
		t.Fatal(err)
	}
	repo.AtOnce = false
	_, err = host.Resolve("myapp/production")
	refused(t, err, trust.CheckProof, "myapp/production")

	two := repo.Release("myapp", "2", "testing", app("two"))
	now := time.Now().Add(2 * time.Second)
	attest(t, repo, testing_, two, now)
	_, err = releases.Promote(t.Context(), repo.Publisher, "myapp", "testing", "production")
	refused(t, err, trust.CheckProof, "myapp/production")

	second := repo.As()
	second.Keys = bob
	result, err := attestBy(t, second, testing_, two, reports(now, "a", "b", "c"))
	if err != nil || result.Missing != 0 || len(result.Keys) != 2 {
		t.Fatalf("the second signature gives %+v, %v", result, err)
	}
	promote(t, repo)
	takes(t, host, "2")
}
