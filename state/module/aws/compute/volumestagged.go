package compute

import (
	"context"
	"fmt"
	"maps"
	"slices"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/module/aws/network"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// volumesTagged implements boto_ec2.volumes_tagged: tags of the volumes that match filters.
type volumesTagged struct {
	cloud.Common
	Name          string `sls:"name"`
	Maps          []any  `sls:"tag_maps,required"`
	Authoritative bool   `sls:"authoritative"`

	made map[string]bool // by name: an instance does not exist, and the run makes it
}

// taggedFields returns the fields of an entry of tag_maps.
func taggedFields() cloud.Fields {
	return cloud.Fields{"filters": cloud.Anything, "tags": cloud.Anything, "in_states": cloud.Anything}
}

// Check implements module.Resource.
func (t *volumesTagged) Check(ctx context.Context, _ *host.Host) (module.Diff, error) {
	return t.Planned(t.look(ctx))
}

func (t *volumesTagged) look(ctx context.Context) (*cloud.Plan, error) {
	a, err := t.Cloud.Account(ctx, "ec2", t.Arguments)
	if err != nil {
		return nil, err
	}
	p := cloud.NewPlan()
	t.made = map[string]bool{}
	for _, item := range t.Maps {
		if err := taggedFields().Check("the entry "+value.Repr(item)+" of tag_maps", item); err != nil {
			return nil, err
		}
		m := cloud.MapOf(item)
		tags := cloud.MapOf(m.Value("tags"))
		if tags == nil {
			return nil, diag.Amazon.Hint(fmt.Errorf("the entry %s of tag_maps has no tags", value.Repr(item)),
				"write filters, tags and in_states")
		}
		filters, err := t.filters(ctx, a, m)
		if err != nil {
			return nil, err
		}
		all, err := volumesOf(ctx, a, filters...)
		if err != nil {
			return nil, err
		}
		for _, v := range all {
			t.tag(p, a, v, tags, sdk.ToString(v.VolumeId))
		}
		if err := t.planned(p, a, m, all, tags); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// planned plans the tags of the volumes that the run makes or attaches, and of those that an instance has that the run
// makes.
func (t *volumesTagged) planned(p *cloud.Plan, a *cloud.Account, m *value.Map, shown []types.Volume,
	tags *value.Map) error {
	filters := cloud.MapOf(m.Value("filters"))
	called := func(name string) string { return a.Called("instance", name) }
	planned, err := volumesPlanned(a)
	if err != nil {
		return err
	}
	matching := planned.matching(filters, shown, called)
	for _, name := range slices.Sorted(maps.Keys(matching)) {
		v := matching[name].Volume
		if v.VolumeId == nil {
			v.VolumeId = sdk.String(cloud.Later)
			t.tag(p, a, v, tags, "volume "+name)
			continue
		}
		t.tag(p, a, v, tags, *v.VolumeId)
	}
	instance := called(cloud.Text(filters, "instance_name"))
	if filters.Len() == 1 && t.made[instance] {
		t.tag(p, a, types.Volume{VolumeId: sdk.String(cloud.Later)}, tags, "the volumes of instance "+instance)
	}
	return nil
}

// filters returns the filters of an entry. instance_name is a filter of Salt, and the others are filters of AWS.
func (t *volumesTagged) filters(ctx context.Context, a *cloud.Account, m *value.Map) (all []types.Filter, err error) {
	for key, v := range cloud.MapOf(m.Value("filters")).All() {
		name := value.Str(key)
		if name != "instance_name" {
			all = append(all, network.Filter(name, cloud.Texts(v)...))
			continue
		}
		instance := a.Called("instance", value.Str(v))
		instances, err := InstancesOf(ctx, a, instance, "")
		if err != nil {
			return nil, err
		}
		t.made[instance] = len(instances) == 0 && a.Expects("instance", instance)
		ids := []string{"none"}
		for _, i := range instances {
			ids = append(ids, *i.InstanceId)
		}
		all = append(all, network.Filter("attachment.instance-id", ids...))
	}
	return all, nil
}

// tag plans the tags of a volume. title describes it in the plan.
func (t *volumesTagged) tag(p *cloud.Plan, a *cloud.Account, v types.Volume, want *value.Map, title string) {
	one, id := cloud.NewPlan(), sdk.ToString(v.VolumeId)
	has := v.Tags
	if !t.Authoritative {
		has = slices.DeleteFunc(slices.Clone(has), func(tag types.Tag) bool { return !want.Has(sdk.ToString(tag.Key)) })
	}
	network.TagEC2(one, a, id, has, want)
	if len(one.Steps) > 0 {
		p.Differ("tags of "+title, one.Old.Value("tags"), one.New.Value("tags"))
		if id == cloud.Later { // only a dry run has made nothing yet
			p.Then("tags set", func(context.Context) error {
				return diag.Resource.Hint(fmt.Errorf("AWS does not show %s yet", title),
					"run it again: what is done already stays unchanged")
			})
			return
		}
		p.Steps = append(p.Steps, one.Steps...)
	}
}
