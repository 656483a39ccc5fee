package cloud

import (
	"fmt"
	"maps"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// A run removes only what its plan showed. Each plan notes what it removes: the resource, with the ID by which AWS
// tells it from another one of that name, or parts of one, such as rules, policies and tags. A run compares.

// removals returns a text for each thing that the plan removes.
func (c *Common) removals() []string {
	p := c.plan
	switch {
	case len(p.Steps) == 0:
		return nil
	case p.removed:
		return gone(p.Old)
	}
	var all []string
	for _, field := range p.Old.Names() {
		all = append(all, lost(field, p.Old.Value(field), p.New.Value(field))...)
	}
	return all
}

// gone returns the text of a resource that is deleted, by its first field and its ID, and one for each part of it. Less
// than a plan showed may go, such as a user who is in no group any more, and not more.
func gone(old *value.Map) []string {
	names := old.Names()
	if len(names) == 0 {
		return nil
	}
	all := []string{value.Repr(value.NewMap(names[0], old.Value(names[0]), "id", old.Value("id")))}
	for _, field := range names[1:] {
		if field != "id" {
			all = append(all, lost(field, old.Value(field), nil)...)
		}
	}
	return all
}

// lost returns a text for each item of a list, each key of a mapping and each value that new lacks. A value in place of
// another one is a change and not a removal.
func lost(field string, old, new any) (all []string) {
	switch old := old.(type) {
	case *value.List:
		now, _ := new.(*value.List)
		for _, item := range old.Items {
			if !holds(now, item) {
				all = append(all, field+" "+value.Repr(item))
			}
		}
	case *value.Map:
		now, _ := new.(*value.Map)
		for _, key := range old.Names() {
			v := old.Value(key)
			if !now.Has(key) && !value.Truth(v) { // such as a tag without a value
				all = append(all, field+"."+key+" "+value.Repr(v))
				continue
			}
			all = append(all, lost(field+"."+key, v, now.Value(key))...)
		}
	case int: // such as the number of instances, of which less may go
		if old != 0 && (new == nil || new == 0) {
			all = append(all, field)
		}
	default:
		if value.Truth(old) && (new == nil || new == "") {
			all = append(all, field+" "+value.Repr(old))
		}
	}
	return all
}

func holds(list *value.List, item any) bool {
	if list == nil {
		return false
	}
	for _, one := range list.Items {
		if value.Equal(one, item) {
			return true
		}
	}
	return false
}

// agreed returns an error if the plan removes something that the plan which a person agreed to did not show.
func (c *Common) agreed() error {
	if c.Cloud.Agreed == nil {
		return nil
	}
	for _, what := range c.removals() {
		if c.Cloud.Agreed[c.key(what)] {
			continue
		}
		err := fmt.Errorf("it is not changed: the plan did not show that it removes %s", what)
		if c.plan.removed {
			err = fmt.Errorf("it is not deleted: the plan did not show that %s is", what)
		}
		return diag.Resource.Hint(err, "run it again, and look at the plan; --yes deletes without a question")
	}
	return nil
}

// key returns a removal with the state that does it.
func (c *Common) key(what string) string {
	text := ""
	for _, name := range []string{"state", "fun", "__id__", "name"} {
		text += Text(c.All, name) + "\x00"
	}
	return text + what
}

// noteRemovals notes what a plan removes.
func (c *Common) noteRemovals() {
	c.Cloud.mu.Lock()
	defer c.Cloud.mu.Unlock()
	if c.Cloud.removed == nil {
		c.Cloud.removed = map[string]bool{}
	}
	for _, what := range c.removals() {
		c.Cloud.removed[c.key(what)] = true
	}
}

// Removals returns a text for each thing that the states planned to remove.
func (c *Cloud) Removals() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[string]bool{}
	maps.Copy(all, c.removed)
	return all
}
