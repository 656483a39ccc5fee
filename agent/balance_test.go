package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/elb"
	"github.com/corpus-agent/corpus-agent/agent/elb/elbtest"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/storetest"
	"github.com/corpus-agent/corpus-agent/state"
)

const (
	balancer    = "myapp-testing-useast1" // named like the cluster of the lab's host
	targetGroup = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/myapp/1"
)

// balanced is a host in a load balancer and a target group, on which version 1 is deployed.
func balanced(t *testing.T) (l *lab, s *elbtest.Services) {
	t.Helper()
	s = elbtest.Start(t, balancer, targetGroup)
	l = newLab(t)
	l.Config.ELB.Names, l.Config.ELB.TargetGroups = []string{balancer}, []string{targetGroup}
	l.Config.ELB.Deploy, l.Config.ELB.Timeout = true, soon
	l.OpenBalancers = elbtest.Open
	l.publish("1")
	l.expect(exit.OK)
	l.served(s, true)
	s.Actions()
	return l, s
}

// served checks whether the host is in all of its load balancers, or in none.
func (l *lab) served(s *elbtest.Services, want bool) {
	l.t.Helper()
	for _, name := range []string{balancer, targetGroup} {
		if s.Has(name) != want {
			l.t.Errorf("registered with %s: %v, want %v", name, !want, want)
		}
	}
}

// TestDeployLeavesTheLoadBalancers checks that a deploy deregisters the host before its first link moves, and registers
// it when it is healthy, also in a first deploy. A run without a new release sends no requests to the load balancers.
func TestDeployLeavesTheLoadBalancers(t *testing.T) {
	l, s := balanced(t)
	s.Answer(elbtest.How{Healthy: 2, Drained: 2})
	l.expect(exit.OK)
	if sent := s.Actions(); len(sent) > 0 {
		t.Errorf("a run without a new release sent %q", sent)
	}
	l.publish("2")
	l.engine.during = func(state.Request) { l.served(s, false) }
	l.expect(exit.OK)
	l.links("2", "2", "1")
	l.served(s, true)
	if sent := strings.Join(s.Actions(), " "); strings.Count(sent, "DescribeTargetHealth") != 7 {
		t.Errorf("the run sent %s; want one check of the target before it leaves, three until it has drained, and "+
			"three until it is healthy", sent)
	}
	if _, err := l.RollbackTo(context.Background(), ""); err != nil {
		t.Fatal(err)
	}
	l.links("1", "1", "")
	l.served(s, true)
}

// TestManuallyDeregisteredHostStaysDeregistered checks that a deploy does not register a host that a person
// deregistered.
func TestManuallyDeregisteredHostStaysDeregistered(t *testing.T) {
	l, s := balanced(t)
	c, err := elbtest.Open(context.Background())
	must(t, err)
	must(t,
		c.Deregister(context.Background(), elb.Balancers{Names: []string{balancer}, TargetGroups: []string{targetGroup}}, 0))
	l.publish("2")
	noted(t, l.expect(exit.OK), "registered with none of its load balancers")
	l.served(s, false)
}

func TestHostEntersItsLoadBalancersAfterARollback(t *testing.T) {
	l, s := balanced(t)
	l.publish("2-broken")
	l.expect(exit.RolledBack)
	l.links("1", "1", "")
	l.served(s, true)
}

// TestHostWhoseRollbackFailedStaysOut checks that the host stays out of its load balancers until a run succeeds.
func TestHostWhoseRollbackFailedStaysOut(t *testing.T) {
	l, s := balanced(t)
	l.publish("2-broken")
	l.engine.fails = func(string) error { return exit.WithCode(exit.Failed, errors.New("a state failed")) }
	noted(t, l.expect(exit.RollbackFailed), "stays out of "+balancer)
	l.served(s, false)
	if away := mustStatus(t, l).Away; away == nil || len(away.Names) != 1 || away.Names[0] != balancer {
		t.Errorf("status lists the load balancers %+v that the host has left", away)
	}
	noted(t, l.expect(exit.Failed), "stays out of "+balancer)
	l.served(s, false)
	l.engine.fails = nil
	l.expect(exit.OK)
	l.served(s, true)
}

// TestUnreachableLoadBalancerPreventsDeploy checks that the host stays registered and nothing is deployed.
func TestUnreachableLoadBalancerPreventsDeploy(t *testing.T) {
	for _, how := range []elbtest.How{{Fault: "AccessDenied"}, {Fault: "AccessDenied", Faulty: "DeregisterTargets"}} {
		t.Run(how.Faulty, func(t *testing.T) {
			l, s := balanced(t)
			s.Answer(how)
			l.publish("2")
			r, err := l.deploy()
			if exit.Code(err) != exit.Failed || !strings.Contains(err.Error(), "nothing was deployed") ||
				!strings.Contains(err.Error(), "AccessDenied") {
				t.Fatalf("the deploy ends with %d: %v", exit.Code(err), err)
			}
			for _, want := range []string{"let the instance's role call elasticloadbalancing", "the next run tries it again"} {
				if !strings.Contains(r.Hint, want) {
					t.Errorf("the hint is %q, want %q in it", r.Hint, want)
				}
			}
			l.links("1", "1", "")
			l.served(s, true)
			s.Answer(elbtest.How{})
			l.expect(exit.OK)
			l.links("2", "2", "1")
			l.served(s, true)
		})
	}
}

// TestFailedRegistrationFailsTheRun checks that the run fails without a quarantine, and that the next run registers the
// host.
func TestFailedRegistrationFailsTheRun(t *testing.T) {
	l, s := balanced(t)
	s.Answer(elbtest.How{Fault: "AccessDenied", Faulty: "RegisterTargets"})
	l.publish("2")
	for range 2 {
		r, err := l.deploy()
		if exit.Code(err) != exit.Failed || !strings.Contains(err.Error(), "not back in its load balancers") ||
			!strings.Contains(r.Hint, "corpus-agent elb register") {
			t.Fatalf("the deploy ends with %d: %v, hint %q", exit.Code(err), err, r.Hint)
		}
		l.links("2", "2", "1")
		if s.Has(targetGroup) {
			t.Error("the host is in its target group")
		}
	}
	s.Answer(elbtest.How{})
	l.expect(exit.OK)
	l.served(s, true)
	s.Actions()
	l.expect(exit.OK)
	if sent := s.Actions(); len(sent) > 0 {
		t.Errorf("a run without a new release sent %q", sent)
	}
}

// TestWaitsForLoadBalancersAreBounded checks the limit before a deploy, which then continues, and after it.
func TestWaitsForLoadBalancersAreBounded(t *testing.T) {
	l, s := balanced(t)
	l.Config.ELB.Timeout = 50 * time.Millisecond
	s.Answer(elbtest.How{Drained: elbtest.Never})
	l.publish("2")
	noted(t, l.expect(exit.OK), "the deploy continues, and connections that are open may be cut")
	l.links("2", "2", "1")
	l.served(s, true)
	s.Answer(elbtest.How{Healthy: elbtest.Never})
	l.publish("3")
	r, err := l.deploy()
	if exit.Code(err) != exit.Failed || !strings.Contains(err.Error(), "is not in service") ||
		!strings.Contains(r.Hint, "look at the health check") {
		t.Fatalf("the deploy ends with %d: %v, hint %q", exit.Code(err), err, r.Hint)
	}
	l.links("3", "3", "2")
	s.Answer(elbtest.How{})
	l.expect(exit.OK)
}

// TestDryRunReportsLoadBalancers checks that a dry run sends no requests to them.
func TestDryRunReportsLoadBalancers(t *testing.T) {
	l, s := balanced(t)
	l.publish("2")
	dry := func() *report.Report {
		r, err := l.Deploy(context.Background(), agent.Given{}, true)
		must(t, err)
		if sent := s.Actions(); len(sent) > 0 {
			t.Errorf("a dry run sent %q", sent)
		}
		return r
	}
	noted(t, dry(), "would deregister this host from "+balancer+", "+targetGroup)
	s.Answer(elbtest.How{Fault: "AccessDenied", Faulty: "RegisterTargets"})
	l.expect(exit.Failed)
	s.Actions()
	noted(t, dry(), "would register this host again with "+balancer+", "+targetGroup)
	s.Answer(elbtest.How{})
	l.expect(exit.OK)
	s.Actions()
	r := dry()
	if strings.Contains(strings.Join(r.Notes, "\n"), "deregister") {
		t.Errorf("a dry run without a new release has the notes %q", r.Notes)
	}
}

// TestKilledRunIsContinuedByNextRun checks that the next run registers the host, with a new release and without the
// store.
func TestKilledRunIsContinuedByNextRun(t *testing.T) {
	for name, lost := range map[string]bool{"": false, "and the store is lost": true} {
		t.Run(name, func(t *testing.T) {
			s := elbtest.Start(t, balancer)
			l := newLab(t)
			repo, storeDir, trustRoot := storeOnDisk(t)
			l.repo, l.store = repo, repo.Store
			l.Config.ELB.Deploy, l.Config.ELB.Timeout, l.OpenBalancers = true, soon, elbtest.Open
			l.publish("1")
			l.expect(exit.OK)
			l.publish("2")
			if code := spawn(t, l.Layout.Root, storeDir, trustRoot, 0, childBalancer+"=1"); code != -1 {
				t.Fatalf("exit code %d, want the code of a killed process", code)
			}
			if s.Has(balancer) {
				t.Fatal("the run that was killed had not left the load balancer")
			}
			want := exit.OK
			if lost {
				l.store = storetest.NewFaulty(l.repo.Store, storetest.Fault{Err: store.ErrUnreachable})
				want = exit.Unreachable
			}
			r, err := l.deploy()
			if exit.Code(err) != want {
				t.Fatalf("exit code %d (%v), want %d", exit.Code(err), err, want)
			}
			l.links("2", "2", "1")
			if !s.Has(balancer) {
				t.Errorf("the host is not back in the load balancer; notes are %q", r.Notes)
			}
		})
	}
}

// TestHostWithAnotherInstanceEntersNoLoadBalancer checks that a host made from an image does not register with the load
// balancers of the image's host.
func TestHostWithAnotherInstanceEntersNoLoadBalancer(t *testing.T) {
	l, s := balanced(t)
	s.Answer(elbtest.How{Fault: "AccessDenied", Faulty: "RegisterTargets"})
	l.publish("2")
	l.expect(exit.Failed)
	l.OpenBalancers = func(ctx context.Context) (*elb.Client, error) {
		c, err := elbtest.Open(ctx)
		if err == nil {
			c.Instance = "i-2"
		}
		return c, err
	}
	s.Actions()
	noted(t, l.expect(exit.OK), "it is not registered with them")
	if sent := s.Actions(); len(sent) > 0 {
		t.Errorf("another instance sent %q", sent)
	}
}
