package proofs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/artifacttest"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/projects"
	"github.com/corpus-agent/corpus-agent/artifact/publish/proofs"
	"github.com/corpus-agent/corpus-agent/artifact/publish/refresh"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

var testStage = artifact.Ref{Project: "myapp", Channel: "testing"}

// proving returns a store with an attestation key and one release on testing.
func proving(t *testing.T) (*artifacttest.Repo, artifact.Release) {
	t.Helper()
	repo := artifacttest.New(t)
	r := repo.Release("myapp", "1", "testing", artifacttest.Files{"app": "1"})
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
	return repo, r
}

func healthyOn(hosts ...string) (list []trust.Healthy) {
	for _, h := range hosts {
		list = append(list, trust.Healthy{Host: h, Run: "r", At: time.Now().UTC().Truncate(time.Second)})
	}
	return list
}

// attest attests a release with a publisher that has read the store.
func attest(t *testing.T, p *publish.Publisher, r artifact.Release, hosts ...string) (proofs.Attested, error) {
	t.Helper()
	c, err := proofs.Prepare(t.Context(), p, testStage, r.Version)
	if err != nil {
		t.Fatal(err)
	}
	return proofs.Attest(t.Context(), p, c, healthyOn(hosts...))
}

// grounds returns the grounds by which production was promoted.
func grounds(t *testing.T, repo *artifacttest.Repo) trust.Grounds {
	t.Helper()
	client, err := repo.Host().Client()
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list[0].Grounds["production"]
}

func TestExistingProofIsImportedBeforeRequirement(t *testing.T) {
	t.Parallel()
	repo, one := proving(t)
	if _, err := attest(t, repo.Publisher, one, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := releases.Promote(t.Context(), repo.Publisher, "myapp", "testing", "production"); err != nil {
		t.Fatal(err)
	}
	required, err := projects.Require(t.Context(), repo.Publisher, artifact.Ref{Project: "myapp", Channel: "production"},
		&trust.Requirement{From: "testing", Hosts: 1, Fresh: 7, Holds: 90})
	if err != nil || required.Refused != "" {
		t.Fatalf("a requirement with a proof returns %+v, %v", required, err)
	}
	if _, err := repo.Host().Resolve("myapp/production"); err != nil {
		t.Error(err)
	}
	required, err = projects.Require(t.Context(), repo.Publisher, artifact.Ref{Project: "myapp", Channel: "production"},
		&trust.Requirement{From: "testing", Hosts: 2, Fresh: 7, Holds: 90})
	if err != nil || !strings.Contains(required.Refused, "it names 1 host, and 2 are required") || required.Hint == "" {
		t.Errorf("a requirement beyond the proof returns %+v, %v", required, err)
	}
}

func publicID(t *testing.T, repo *artifacttest.Repo, role string) string {
	t.Helper()
	keys, err := repo.Keys.Public(role)
	if err != nil || len(keys) != 1 {
		t.Fatalf("%s has the keys %v, %v", role, keys, err)
	}
	id, err := keys[0].ID()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestTheGroundsOfAChannelNameProofAndSigners(t *testing.T) {
	t.Parallel()
	repo, one := proving(t)
	if _, err := attest(t, repo.Publisher, one, "a", "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := releases.Promote(t.Context(), repo.Publisher, "myapp", "testing", "production"); err != nil {
		t.Fatal(err)
	}
	g := grounds(t, repo)
	if want := publicID(t, repo, "myapp"); !slices.Equal(g.Promoted.Keys, []string{want}) || g.Promoted.Serial != 1 ||
		g.Promoted.By != "myapp 2" {
		t.Errorf("promoted is %+v, want key %s, move 1, myapp 2", g.Promoted, want)
	}
	want := publicID(t, repo, trust.AttestationRole)
	if p := g.Proof; p == nil || !slices.Equal(p.Keys, []string{want}) || p.Digest != one.Digest ||
		p.Channel != "testing" || len(p.Hosts) != 2 || p.Hosts[0].Host != "a" || p.Hosts[0].At.IsZero() {
		t.Errorf("the proof is %+v, want %s of two hosts of testing, signed with key %s", p, one.Digest, want)
	}
	if _, err := projects.Revoke(t.Context(), repo.Publisher, trust.AttestationRole, want); err == nil {
		t.Fatal("the only attestation key was revoked")
	}
	stolen := want
	other := repo.Aside()
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
	if _, err := projects.Revoke(t.Context(), repo.Publisher, trust.AttestationRole, stolen); err != nil {
		t.Fatal(err)
	}
	if g := grounds(t, repo); len(g.Proof.Keys) != 0 {
		t.Errorf("a removed key still counts as a signer: %v", g.Proof.Keys)
	}
}

func TestTooFewHostsDoNotAttest(t *testing.T) {
	t.Parallel()
	repo, one := proving(t)
	if _, err := projects.Require(t.Context(), repo.Publisher, artifact.Ref{Project: "myapp", Channel: "production"},
		&trust.Requirement{From: "testing", Hosts: 3, Fresh: 7, Holds: 90}); err != nil {
		t.Fatal(err)
	}
	_, err := attest(t, repo.Publisher, one, "a", "b")
	if err == nil || !strings.Contains(err.Error(), "2 of 3 hosts") || diag.HintOf(err) == "" {
		t.Errorf("attesting with two hosts of three: %v, hint %q", err, diag.HintOf(err))
	}
}

func TestProofsAreRenewedBeforeTheyExpire(t *testing.T) {
	t.Parallel()
	repo, one := proving(t)
	production := artifact.Ref{Project: "myapp", Channel: "production"}
	if _, err := projects.Require(t.Context(), repo.Publisher, production,
		&trust.Requirement{From: "testing", Hosts: 1, Fresh: 7, Holds: 10}); err != nil {
		t.Fatal(err)
	}
	if _, err := attest(t, repo.Publisher, one, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := releases.Promote(t.Context(), repo.Publisher, "myapp", "testing", "production"); err != nil {
		t.Fatal(err)
	}
	due := func(within time.Duration) (left []refresh.Standing) {
		t.Helper()
		list, err := refresh.Roles(t.Context(), repo.Publisher, within)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if s.Left {
				left = append(left, s)
			}
		}
		return left
	}
	if left := due(24 * time.Hour); len(left) != 0 {
		t.Errorf("ten days before the expiry, refresh leaves %+v", left)
	}
	left := due(12 * 24 * time.Hour)
	if len(left) != 1 || left[0].Role != "the proof of myapp/production" ||
		!strings.Contains(left[0].Why, "corpus attest myapp testing --renew") {
		t.Fatalf("refresh leaves %+v, want the proof", left)
	}
	before := grounds(t, repo)
	attester := repo.As(trust.AttestationRole)
	attester.Now = artifacttest.Later(9)
	renewed, err := proofs.Renew(t.Context(), attester, testStage)
	if err != nil || len(renewed) != 1 {
		t.Fatalf("renewing gives %+v, %v", renewed, err)
	}
	if _, err := releases.Promote(t.Context(), repo.Publisher, "myapp", "production", "production"); err != nil {
		t.Fatal(err)
	}
	after := grounds(t, repo)
	if !after.Proof.Expires.After(before.Proof.Expires) || !after.Proof.At.Equal(before.Proof.At) || after.Refused != "" {
		t.Errorf("the proof %+v was renewed as %+v", before.Proof, after.Proof)
	}
	if left := due(12 * 24 * time.Hour); len(left) != 0 {
		t.Errorf("afterwards, refresh leaves %+v", left)
	}
}

func TestConcurrentAttestsAtTheSameTime(t *testing.T) {
	t.Parallel()
	repo, one := proving(t)
	if _, err := projects.Require(t.Context(), repo.Publisher, artifact.Ref{Project: "myapp", Channel: "production"},
		&trust.Requirement{From: "testing", Hosts: 1, Fresh: 7, Holds: 10}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 3)
	for _, host := range []string{"a", "b", "c"} { // three people attest concurrently
		p := repo.As(trust.AttestationRole)
		about, err := proofs.Prepare(t.Context(), p, testStage, one.Version)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, err := proofs.Attest(t.Context(), p, about, healthyOn(host)); done <- err }()
	}
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if _, err := releases.Promote(t.Context(), repo.Publisher, "myapp", "testing", "production"); err != nil {
		t.Error(err)
	}
}

// TestAttestingReadsTheStoreOnce counts requests, since a store may be far away: an attestation reads the metadata
// once, and each file of it once.
func TestAttestingReadsTheStoreOnce(t *testing.T) {
	t.Parallel()
	repo, one := proving(t)
	var log storetest.Log
	p := repo.As(trust.AttestationRole)
	p.Store = store.Observe(p.Store, log.Add)
	if _, err := attest(t, p, one, "a"); err != nil {
		t.Fatal(err)
	}
	read := map[string]int{}
	for _, r := range log.Requests() {
		if r.Op == store.OpGet && strings.HasPrefix(r.Key, "metadata/") {
			read[r.Key]++
		}
	}
	if read[trust.TimestampKey] != 1 {
		t.Errorf("the timestamp was read %d times:\n%s", read[trust.TimestampKey], &log)
	}
	for key, n := range read {
		if n > 1 {
			t.Errorf("%s was read %d times", key, n)
		}
	}
}
