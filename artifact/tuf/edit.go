package tuf

import (
	"fmt"
	"slices"
)

// AddKey allows a key to sign a role.
func (r *RootType) AddKey(key *Key, role string) error {
	may := r.Roles[role]
	if may == nil {
		return noRole(role)
	}
	return addKey(&r.Keys, &may.KeyIDs, key)
}

// RevokeKey removes a key from a role, and from the root if no other role has it.
func (r *RootType) RevokeKey(id, role string) error {
	may := r.Roles[role]
	if may == nil {
		return noRole(role)
	}
	if err := revokeKey(&may.KeyIDs, id, role); err != nil {
		return err
	}
	for _, other := range r.Roles {
		if slices.Contains(other.KeyIDs, id) {
			return nil
		}
	}
	delete(r.Keys, id)
	return nil
}

// AddKey allows a key to sign a delegated role.
func (t *TargetsType) AddKey(key *Key, role string) error {
	may := t.delegated(role)
	if may == nil {
		return noRole(role)
	}
	return addKey(&t.Delegations.Keys, &may.KeyIDs, key)
}

// RevokeKey removes a key from a delegated role, and from the targets if no other role has it.
func (t *TargetsType) RevokeKey(id, role string) error {
	may := t.delegated(role)
	if may == nil {
		return noRole(role)
	}
	if err := revokeKey(&may.KeyIDs, id, role); err != nil {
		return err
	}
	if !slices.ContainsFunc(t.Delegations.Roles, func(r DelegatedRole) bool { return slices.Contains(r.KeyIDs, id) }) {
		delete(t.Delegations.Keys, id)
	}
	return nil
}

func (t *TargetsType) delegated(role string) *DelegatedRole {
	if t.Delegations == nil {
		return nil
	}
	for i := range t.Delegations.Roles {
		if t.Delegations.Roles[i].Name == role {
			return &t.Delegations.Roles[i]
		}
	}
	return nil
}

func noRole(role string) error { return fmt.Errorf("there is no role %s", role) }

func addKey(keys *map[string]*Key, ids *[]string, key *Key) error {
	id, err := key.ID()
	if err != nil {
		return err
	}
	if !slices.Contains(*ids, id) {
		*ids = append(*ids, id)
	}
	if *keys == nil {
		*keys = map[string]*Key{}
	}
	(*keys)[id] = key
	return nil
}

func revokeKey(ids *[]string, id, role string) error {
	at := slices.Index(*ids, id)
	if at < 0 {
		return fmt.Errorf("key %s is none of %s", id, role)
	}
	*ids = slices.Concat((*ids)[:at], (*ids)[at+1:])
	if *ids == nil {
		*ids = []string{}
	}
	return nil
}
