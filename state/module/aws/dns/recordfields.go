package dns

import (
	"context"
	"strconv"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/route53/types"

	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// aliasFields returns the fields of the resource that a record points to.
func aliasFields() cloud.Fields {
	return cloud.Fields{"zone_id": cloud.Word, "dns_name": cloud.Word, "evaluate_target_health": cloud.Anything}
}

// wanted returns the declared fields of the record.
func (r Record) wanted(ctx context.Context, resolve func(context.Context) (string, error)) (*value.Map, error) {
	want := value.NewMap("record_type", strings.ToUpper(r.Type))
	id, weight := r.identifier()
	if id != "" {
		want.Set("identifier", id)
	}
	if _, err := strconv.Atoi(weight); err == nil && weight != "" {
		want.Set("weight", weight)
	} else if weight != "" {
		want.Set("region", weight)
	}
	if r.Alias != nil {
		if err := aliasFields().Check("alias", r.Alias); err != nil {
			return nil, err
		}
		want.Set("alias", value.NewMap("zone_id", cloud.Text(r.Alias, "zone_id"),
			"dns_name", dotted(cloud.Text(r.Alias, "dns_name")),
			"evaluate_target_health", value.Truth(r.Alias.Value("evaluate_target_health"))))
		return want, nil
	}
	values := r.values()
	if resolve != nil {
		v, err := resolve(ctx)
		if err != nil {
			return nil, err
		}
		values = []string{v}
	}
	if r.TTL > 0 {
		want.Set("ttl", r.TTL)
	}
	if strings.EqualFold(r.Type, "CNAME") {
		for i := range values {
			values[i] = strings.TrimSuffix(values[i], ".")
		}
	}
	want.Set("value", cloud.Sorted(values))
	return want, nil
}

// RecordFields returns the fields of a record as a plan shows them.
func RecordFields(set types.ResourceRecordSet) *value.Map {
	m := value.NewMap("record_type", string(set.Type), "identifier", sdk.ToString(set.SetIdentifier), "ttl",
		int(sdk.ToInt64(set.TTL)))
	if set.Weight != nil {
		m.Set("weight", strconv.FormatInt(*set.Weight, 10))
	}
	if set.Region != "" {
		m.Set("region", string(set.Region))
	}
	if t := set.AliasTarget; t != nil {
		m.Set("alias", value.NewMap("zone_id", sdk.ToString(t.HostedZoneId), "dns_name", dotted(sdk.ToString(t.DNSName)),
			"evaluate_target_health", t.EvaluateTargetHealth))
	}
	var values []string
	for _, r := range set.ResourceRecords {
		v := sdk.ToString(r.Value)
		if set.Type == types.RRTypeCname {
			v = strings.TrimSuffix(v, ".")
		}
		values = append(values, v)
	}
	m.Set("value", cloud.Sorted(values))
	return m
}

// set returns a record in the form of a request.
func (r Record) set(name string, want *value.Map) types.ResourceRecordSet {
	set := types.ResourceRecordSet{Name: &name, Type: types.RRType(cloud.Text(want, "record_type"))}
	if id := cloud.Text(want, "identifier"); id != "" {
		set.SetIdentifier = &id
	}
	if n, err := strconv.ParseInt(cloud.Text(want, "weight"), 10, 64); err == nil {
		set.Weight = &n
	}
	set.Region = types.ResourceRecordSetRegion(cloud.Text(want, "region"))
	if alias := cloud.MapOf(want.Value("alias")); alias != nil {
		set.AliasTarget = &types.AliasTarget{HostedZoneId: sdk.String(cloud.Text(alias, "zone_id")),
			DNSName:              sdk.String(cloud.Text(alias, "dns_name")),
			EvaluateTargetHealth: value.Truth(alias.Value("evaluate_target_health"))}
		return set
	}
	set.TTL = sdk.Int64(60)
	if r.TTL > 0 {
		set.TTL = sdk.Int64(int64(r.TTL))
	}
	for _, v := range cloud.Texts(want.Value("value")) {
		set.ResourceRecords = append(set.ResourceRecords, types.ResourceRecord{Value: sdk.String(v)})
	}
	return set
}

// change sends a change of a record and, unless wait_for_sync is false, waits until all name servers have it.
func (r Record) change(ctx context.Context, a *cloud.Account, action types.ChangeAction,
	set types.ResourceRecordSet) error {
	name := sdk.ToString(set.Name)
	zone, _, err := ZoneOf(ctx, a, r.Zone, r.Private)
	if err != nil {
		return err
	}
	if zone == "" {
		return cloud.Missing("hosted zone", r.Zone, "boto_route53.hosted_zone_present")
	}
	client := dnsOf(a)
	out, err := client.ChangeResourceRecordSets(ctx, &route53.ChangeResourceRecordSetsInput{HostedZoneId: &zone,
		ChangeBatch: &types.ChangeBatch{Changes: []types.Change{{Action: action, ResourceRecordSet: &set}}}})
	if err != nil {
		return cloud.Failed("changing record", name, err)
	}
	if !r.Wait || out.ChangeInfo == nil || out.ChangeInfo.Status == types.ChangeStatusInsync {
		return nil
	}
	return cloud.WaitFor(ctx, "the name servers have record "+name, 10*time.Minute, func(ctx context.Context) (bool,
		error) {
		now, err := client.GetChange(ctx, &route53.GetChangeInput{Id: out.ChangeInfo.Id})
		if err != nil {
			return false, cloud.Failed("waiting for record", name, err)
		}
		return now.ChangeInfo.Status == types.ChangeStatusInsync, nil
	})
}
