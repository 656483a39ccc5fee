package aws_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/value"
)

// TestContentOfBalancerPoliciesDrifts checks that a policy with new content replaces the old one at its listener, that
// the old one is deleted, and that the names at AWS are those of Salt.
func TestContentOfBalancerPoliciesDrifts(t *testing.T) {
	b := newBalancers()
	i := newImitation(t, b)
	arguments := func(policies, listener string) string {
		return "{name: elb, availability_zones: [us-east-1a], policies: [" + policies + "], listeners: [{elb_port: 80, " +
			"instance_port: 80, elb_protocol: HTTP" + listener + "}]}"
	}
	cookie := func(seconds int) string {
		return fmt.Sprintf("{policy_name: cookie, policy_type: LBCookieStickinessPolicyType, policy: "+
			"{CookieExpirationPeriod: %d}}", seconds)
	}
	other := ", {policy_name: other, policy_type: ProxyProtocolPolicyType, policy: {ProxyProtocol: true}}"
	const sixty, ninety = "LBCookieStickinessPolicy-cookie-1e9e7132781d724b8c4aa6b4e2652090",
		"LBCookieStickinessPolicy-cookie-dda0f252d417c298b9eabeead9dcc96a"
	const proxy, kept = "ProxyProtocolPolicy-other-d72867b1c31e7d0a97821360cdaf90ba",
		"T-x-d751713988987e9331980363e24189ce"
	for _, c := range []struct{ what, arguments, shown, left, used string }{
		{"the first run", arguments(cookie(60)+other, ", policies: [cookie]"), "", sixty + " " + proxy, sixty},
		{"other content", arguments(cookie(90)+other, ", policies: [cookie]"), "'CookieExpirationPeriod': '60'",
			ninety + " " + proxy, ninety},
		{"one that is not declared", arguments(cookie(90), ", policies: [cookie]"), "policy " + proxy, ninety, ninety},
		{"one that a listener keeps", arguments("{policy_name: x, policy_type: T, policy: {}}", ""), "policy x",
			ninety + " " + kept, ninety},
	} {
		planned := runState(t, i.cloud(), "boto_elb.present", c.arguments, true)
		done := runState(t, i.cloud(), "boto_elb.present", c.arguments, false)
		if !value.Equal(planned, done) || !strings.Contains(value.Repr(done), c.shown) {
			t.Errorf("%s: the plan is %s, and the run does %s", c.what, value.Repr(planned), value.Repr(done))
		}
		if again := runState(t, i.cloud(), "boto_elb.present", c.arguments, false); again.Len() > 0 {
			t.Errorf("%s: a second run changes %s", c.what, value.Repr(again))
		}
		left := strings.Join(sortedKeys(b.all["elb"].policies), " ")
		used := strings.Join(b.all["elb"].ListenerDescriptions[0].PolicyNames, " ")
		if left != c.left || used != c.used {
			t.Errorf("%s: the policies are %s and the listener has %s, want %s and %s", c.what, left, used, c.left, c.used)
		}
	}
}

// TestAnEmptyListRemovesPolicies declares no policies: those of the load balancer are deleted, apart from those that a
// listener is declared with.
func TestAnEmptyListRemovesPolicies(t *testing.T) {
	b := newBalancers()
	i := newImitation(t, b)
	const begin = "{name: elb, availability_zones: [us-east-1a], listeners: [{elb_port: 80, instance_port: 80, " +
		"elb_protocol: HTTP, policies: ["
	const one = "{policy_name: one, policy_type: T, policy: {}}, {policy_name: two, policy_type: T, policy: {}}"
	runState(t, i.cloud(), "boto_elb.present", begin+"one]}], policies: ["+one+"]}", false)
	full := sortedKeys(b.all["elb"].policies)
	for _, c := range []struct{ arguments, left string }{
		{begin + full[0] + "]}]}", strings.Join(full, " ")},
		{begin + full[0] + "]}], policies: []}", full[0]},
		{begin + "]}], policies: []}", ""},
	} {
		planned := runState(t, i.cloud(), "boto_elb.present", c.arguments, true)
		done := runState(t, i.cloud(), "boto_elb.present", c.arguments, false)
		left := strings.Join(sortedKeys(b.all["elb"].policies), " ")
		if !value.Equal(planned, done) || left != c.left {
			t.Errorf("%s: the plan is %s, the run does %s and leaves %s, want %s", c.arguments, value.Repr(planned),
				value.Repr(done), left, c.left)
		}
		if again := runState(t, i.cloud(), "boto_elb.present", c.arguments, false); again.Len() > 0 {
			t.Errorf("%s: a second run changes %s", c.arguments, value.Repr(again))
		}
	}
}
