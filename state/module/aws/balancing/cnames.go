package balancing

import (
	"context"
	"fmt"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancing/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/dns"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// cnameFields returns the fields of a CNAME record of a load balancer. Those that say how Salt reaches Route 53 have no
// effect: records are made with the credentials of the load balancer.
func cnameFields() cloud.Fields {
	return cloud.Fields{"name": cloud.Word, "zone": cloud.Word, "ttl": cloud.Whole, "identifier": cloud.Anything,
		"private_zone": cloud.Flag, "wait_for_sync": cloud.Flag, "split_dns": cloud.Flag, "provider": cloud.Word,
		"region": cloud.Word, "keyid": cloud.Word, "key": cloud.Word, "profile": cloud.Anything,
		"retry_on_rate_limit": cloud.Anything, "rate_limit_retries": cloud.Anything}
}

// cnames plans the CNAME records in Route 53 that point to the load balancer.
func (e *elbPresent) cnames(ctx context.Context, p *cloud.Plan, a *cloud.Account,
	has *types.LoadBalancerDescription) error {
	for _, item := range e.CNAMEs {
		if err := cnameFields().Check("the CNAME "+value.Repr(item), item); err != nil {
			return err
		}
		m := cloud.MapOf(item)
		r := dns.Record{Type: "CNAME", Zone: cloud.Text(m, "zone"), Identifier: m.Value("identifier"), Wait: e.Wait,
			Private: value.Truth(m.Value("private_zone"))}
		name := cloud.Text(m, "name")
		if ttl, ok := cloud.Number(m, "ttl"); ok {
			r.TTL = int(ttl)
		}
		if m.Value("wait_for_sync") != nil {
			r.Wait = value.Truth(m.Value("wait_for_sync"))
		}
		if name == "" || r.Zone == "" {
			return diag.Amazon.Hint(fmt.Errorf("the cname %s lacks name or zone", value.Repr(item)), "give both")
		}
		dns := sdk.ToString(has.DNSName)
		resolve := func(ctx context.Context) (string, error) {
			if dns != "" {
				return dns, nil
			}
			now, err := Describe(ctx, a, e.Name)
			if now == nil || err != nil {
				return cloud.Later, err
			}
			return sdk.ToString(now.DNSName), nil
		}
		if err := r.Look(ctx, p, a, name, "cname ", resolve); err != nil {
			return err
		}
	}
	return nil
}
