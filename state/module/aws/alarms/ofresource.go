package alarms

import (
	"context"
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/module/aws/cloud"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// fieldsOfAlarm returns the fields of an alarm of another resource.
func fieldsOfAlarm() cloud.Fields {
	return cloud.Fields{"name": cloud.Word, "attributes": cloud.Anything}
}

// Of plans the alarms of another resource: those of the pillar, overridden by those of its arguments. Their names
// begin with the name of the resource, and their dimension is the resource. Alarms for which skip returns true are left
// out.
func Of(ctx context.Context, p *cloud.Plan, a *cloud.Account, given, fromPillar any, name, dimension string,
	skip func(*value.Map) bool) error {
	all := value.NewMap()
	if m := cloud.MapOf(fromPillar); m != nil {
		all = value.Copy(m).(*value.Map)
	}
	if m := cloud.MapOf(given); m != nil {
		value.Update(all, value.Copy(m).(*value.Map), true, false)
	}
	for key, v := range all.All() {
		if err := fieldsOfAlarm().Check("the alarm "+value.Str(key), v); err != nil {
			return err
		}
		one := cloud.MapOf(v)
		attributes := cloud.MapOf(one.Value("attributes"))
		if attributes == nil {
			return diag.Amazon.Hint(fmt.Errorf("the alarm %s has no attributes", value.Str(key)), "see boto_cloudwatch_alarm")
		}
		attributes = attributes.Clone()
		attributes.Set("dimensions", value.NewMap(dimension, value.NewList(name)))
		if cloud.Text(attributes, "description") != "" {
			attributes.Set("description", name+" "+cloud.Text(attributes, "description"))
		}
		for _, actions := range []string{"alarm_actions", "insufficient_data_actions", "ok_actions"} {
			if attributes.Has(actions) {
				var named []string
				for _, action := range cloud.Texts(attributes.Value(actions)) {
					named = append(named, strings.Replace(action, ":self:", ":"+name+":", 1))
				}
				attributes.Set(actions, value.Strings(named...))
			}
		}
		if skip != nil && skip(attributes) {
			continue
		}
		title := name
		if cloud.Text(one, "name") != "" {
			title += " " + cloud.Text(one, "name")
		}
		if err := alarm(ctx, p, a, title, attributes, "alarm "+value.Str(key)+": "); err != nil {
			return err
		}
	}
	return nil
}
