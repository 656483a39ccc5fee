package session

import "github.com/corpus-agent/corpus-agent/state/diag"

// CollectErrors returns a function that joins the first error of the machine since the call of CollectErrors to err,
// which may be nil. Templates, functions and modules may take such an error for a result: a file that could not be read
// for lack of file descriptors is not absent.
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
