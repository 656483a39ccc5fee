package session

import "github.com/corpus-agent/corpus-agent/state/diag"

// CollectErrors records errors of the machine from now on, because templates, functions and modules may mistake them
// for an answer: a file that could not be read for lack of file descriptors is not absent. The returned function joins
// such an error to err, which may be nil.
func (s *Session) CollectErrors() func(err error) error {
	mark := s.Host.Mark()
	return func(err error) error {
		machineErr := s.Host.MachineErrorSince(mark)
		if machineErr == nil {
			return err
		}
		var problems diag.List
		problems.AddError(diag.Pos{}, machineErr)
		problems.AddError(diag.Pos{}, err)
		return problems.Err()
	}
}
