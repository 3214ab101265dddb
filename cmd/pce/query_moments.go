package main

import (
	"github.com/spf13/cobra"

	"github.com/pce-engine/pce"
)

func (a *app) queryMomentsCommand() *cobra.Command {
	var covariance []string
	c := a.answerCommand(&cobra.Command{
		Use:   "moments --model MODEL --data FILE [--covariance COLUMNS]",
		Short: "Write the mean of each column given the row's observed cells, then the variance of each",
		Long: `Write the mean of each column given the row's observed cells, then the variance of each, a line
for each row. With --covariance, the covariance matrix of some columns instead, row by row: for
columns A and B the numbers are Var A, Cov A B, Cov B A, Var B.`,
	}, func(m *pce.Model) (*pce.Query, error) {
		if covariance != nil {
			if len(covariance) == 0 {
				return nil, usagef("--covariance names no columns; leave it out for means and variances")
			}
			return m.NewQuery(pce.QueryCovariance, covariance...)
		}
		return m.NewQuery(pce.QueryMoments)
	})
	addList(c.Flags(), &covariance, "covariance", "columns, by name or number from 1, whose covariances are wanted")
	return c
}

// queryExpectCommand makes the command pce query expect. Polynomials are parsed once the model
// is open, as names of columns are its own; a mistake in one is a usage error that shows the
// place.
func (a *app) queryExpectCommand() *cobra.Command {
	var of []string
	c := a.answerCommand(&cobra.Command{
		Use:   "expect --model MODEL --data FILE --of POLYNOMIAL",
		Short: "Write the expectation of linear and quadratic functions given each row's observed cells",
		Long: `Write the expectations of polynomials of degree 2 in the columns given each row's observed
cells, a line for each row with a number for each --of. A column is its name, in double quotes if
it has other characters than letters, digits, points and underscores, or $ and its number from 1:

  --of '2*age + 0.5*age*$3 - "net income"^2 + 1e3'

Labels that are numbers count as these, other categories by their code.`,
	}, func(m *pce.Model) (*pce.Query, error) {
		if len(of) == 0 {
			return nil, usagef("no --of; give the function whose expectation is wanted, such as '2*age - $3^2'")
		}
		return m.NewExpectation(of...)
	})
	c.Flags().StringArrayVar(&of, "of", nil, "polynomial of degree 2 in the columns; repeat it for several")
	return c
}

// usualLevels are the levels of quantiles where none are named.
var usualLevels = []float64{0.05, 0.5, 0.95}

// queryQuantilesCommand makes the command pce query quantiles. The answer to a row has
// len(of)*len(levels) numbers, the levels of one column after the other.
func (a *app) queryQuantilesCommand() *cobra.Command {
	var of []string
	var levels []float64
	c := a.answerCommand(&cobra.Command{
		Use:   "quantiles --model MODEL --data FILE --of COLUMNS [--at LEVELS]",
		Short: "Write quantiles of columns given each row's observed cells",
		Long: `Write quantiles of columns given each row's observed cells, a line for each row: of one column
after the other the smallest number that is not exceeded with each of the probabilities of --at.`,
	}, func(m *pce.Model) (*pce.Query, error) {
		if len(of) == 0 {
			return nil, usagef("no --of; name the columns whose quantiles are wanted")
		}
		return m.NewQuantiles(of, levels...)
	})
	addList(c.Flags(), &of, "of", "columns, by name or number from 1")
	c.Flags().Float64SliceVar(&levels, "at", usualLevels, "levels of the quantiles, between 0 and 1")
	return c
}
