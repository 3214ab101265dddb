package configs

import "time"

// Config is a run: which circuit, on which data, trained how, written where.
//
// Tags: yaml is the key, doc its meaning, enum the words allowed, min and max
// the range (of every element, for lists), for the model.structure that reads
// the section.
type Config struct {
	Name      string  `yaml:"name" doc:"name of the run"`
	Seed      uint64  `yaml:"seed" min:"0" doc:"seed of everything random"`
	Device    string  `yaml:"device" doc:"where to compute: auto, cpu, cuda, cuda:1, ... or emulator; auto takes the first card, or the CPU"`
	Precision string  `yaml:"precision" enum:"mixed|fp32" doc:"numbers used in training; fp32 is exact to float32 throughout"`
	Threads   int     `yaml:"threads" min:"0" max:"4096" doc:"CPU threads; 0: one per core. Results do not depend on it"`
	Model     Model   `yaml:"model" doc:"the circuit"`
	Data      Data    `yaml:"data" doc:"the rows"`
	Compile   Compile `yaml:"compile" doc:"how the circuit becomes a program"`
	Train     Train   `yaml:"train" doc:"how parameters are learned"`
	Cluster   Cluster `yaml:"cluster" doc:"how work is spread over the workers of a cluster"`
	Job       Job     `yaml:"job" doc:"what is done; read by pce cluster submit alone"`
	Output    string  `yaml:"output" doc:"directory of the run; empty: runs/<name>"`
}

// Model is the circuit. Each structure reads its own section and Latents.
type Model struct {
	Structure string   `yaml:"structure" enum:"hclt|hmm|pd|rat-spn|learnspn|equations|file" doc:"what the circuit looks like; equations are those of model.equations, file continues from model.file"`
	Latents   int      `yaml:"latents" min:"0" max:"65536" doc:"units of a latent variable or region; 0: by the number of training rows, 8 for 2000 and fewer to 64 for 33000 and more"`
	Class     string   `yaml:"class" doc:"column of the class, by name or number in the file: each of its categories gets a root of its own in hclt, pd and rat-spn; of model.file, by name or number in the model, what train.discriminative is about; empty: none"`
	Leaf      Leaf     `yaml:"leaf" doc:"distribution of the input nodes"`
	Init      Init     `yaml:"init" doc:"starting parameters"`
	HCLT      HCLT     `yaml:"hclt" for:"hclt" doc:"hidden Chow-Liu tree"`
	HMM       HMM      `yaml:"hmm" for:"hmm" doc:"hidden Markov model"`
	PD        PD       `yaml:"pd" for:"pd" doc:"Poon-Domingos image circuit"`
	RATSPN    RATSPN   `yaml:"rat_spn" for:"rat-spn" doc:"random tensorised sum-product network"`
	LearnSPN  LearnSPN `yaml:"learnspn" for:"learnspn" doc:"sum-product network learned from the rows"`
	Equations string   `yaml:"equations" for:"equations" doc:"a program of equations (.red) that defines the circuit"`
	Sizes     []string `yaml:"sizes" for:"equations" doc:"values of parameters of model.equations, such as D=4; T of input int x[T] is the number of columns, S is model.latents, and those left out are as the program says"`
	File      string   `yaml:"file" for:"file" doc:"model.safetensors of an earlier run, or a circuit as a text: pce's own, one of SPFlow or of Juice, or as a file of SPNC"`
}

// Leaf is the distribution of the input nodes: a family and its settings, of which the others
// are zero.
type Leaf struct {
	Type       string    `yaml:"type" enum:"auto|categorical|bernoulli|binomial|gaussian|log-normal|discretised-logistic|histogram|poisson" doc:"family; auto: categorical for discrete columns, Gaussian for continuous ones"`
	Categories int       `yaml:"categories" min:"0" max:"16777216" doc:"values of a discrete variable, 0..categories-1; 0: as many as the data has"`
	Bins       int       `yaml:"bins" min:"0" max:"16777216" doc:"bins of equal width of a histogram leaf, from the least to the largest number of a continuous column, at most one for each value of a discrete one, from 0 or from the least where that is above the middle; 0: 32"`
	Edges      []float64 `yaml:"edges" doc:"ascending edges of the bins of a histogram leaf over a continuous column, instead of bins"`
	Outside    float64   `yaml:"outside" min:"0" doc:"density of a histogram leaf over a continuous column beyond its edges"`
	MinSigma   float64   `yaml:"min_sigma" min:"0" doc:"least standard deviation of a Gaussian leaf, in the units of the column, or of the logarithm in a log-normal one; 0: a hundredth of the column's spread, or 0.01"`
	MinScale   float64   `yaml:"min_scale" min:"0" doc:"least scale of a discretised logistic leaf; 0: the family's default"`
}

// Init is how parameters start: at random, from a seed of their own.
type Init struct {
	Seed uint64 `yaml:"seed" min:"0" doc:"seed of the starting parameters; 0: derived from the run's seed"`
}

// HCLT is the section of the hidden Chow-Liu tree: where its tree comes from.
type HCLT struct {
	Tree      string  `yaml:"tree" enum:"chow-liu|grid|random" doc:"learned from the training rows; a seeded random spanning tree of the image grid; or a seeded random tree with hclt.inner inner variables"`
	Inner     int     `yaml:"inner" min:"0" max:"16777216" doc:"inner variables of the random tree"`
	Bins      int     `yaml:"bins" min:"2" max:"254" doc:"bins a variable is cut into for the mutual information"`
	Softening float64 `yaml:"softening" min:"0" max:"16" doc:"standard deviation, in bins, of the Gaussian that softens the binning"`
	MaxRows   int     `yaml:"max_rows" min:"1" max:"1000000" doc:"rows drawn to estimate the mutual information"`
}

// HMM is the section of the hidden Markov model, whose time steps are the columns.
type HMM struct {
	Length int  `yaml:"length" min:"0" max:"1048576" doc:"time steps; 0: columns of the data"`
	Tied   bool `yaml:"tied" doc:"all steps share transition and emission"`
}

// PD is the section of the Poon-Domingos circuit, which is for images.
type PD struct {
	Shape            []int `yaml:"shape" min:"1" max:"65536" doc:"[height, width, channels]; empty: shape of the data's images"`
	SplitInterval    int   `yaml:"split_interval" min:"1" max:"65536" doc:"side of a cell; rectangles are split between cells"`
	MaxProductBlocks int   `yaml:"max_product_blocks" min:"1" max:"65536" doc:"products of its rectangle that a block of 32 units of a sum sees, or more where some would be left out; all of them where 32 does not divide model.latents"`
}

// RATSPN is the section of the random tensorised sum-product network.
type RATSPN struct {
	Depth       int `yaml:"depth" min:"1" max:"30" doc:"splits from the root to a leaf region; single variables are split no further"`
	Repetitions int `yaml:"repetitions" min:"1" max:"65536" doc:"random partitions of the variables"`
	Pieces      int `yaml:"pieces" min:"2" max:"65536" doc:"parts of a split"`
}

// LearnSPN is the section of the learner of sum-product networks.
type LearnSPN struct {
	Columns        string  `yaml:"columns" enum:"auto|g-test|rdc" doc:"test of independence by which columns are told apart; auto: g-test where all are discrete, else rdc"`
	Rows           string  `yaml:"rows" enum:"em|k-means" doc:"how rows are clustered: hard EM of mixtures of independent columns, or k-means of the features of rdc"`
	Threshold      float64 `yaml:"threshold" min:"0" max:"1000000" doc:"what two columns must exceed to be dependent: the G statistic over twice its degrees of freedom, or the correlation of rdc; 0: 5 or 0.3"`
	MinRows        int     `yaml:"min_rows" min:"2" max:"1e12" doc:"parts of the table with fewer rows are not cut further"`
	Clusters       int     `yaml:"clusters" min:"2" max:"256" doc:"clusters of the rows of a part, at most"`
	Leaf           string  `yaml:"leaf" enum:"chow-liu|factors" doc:"model of a part that is not cut further: a Chow-Liu tree, or independent columns"`
	Smoothing      float64 `yaml:"smoothing" min:"1e-9" max:"1000000" doc:"rows added to those of each part that is not cut further, spread evenly over the values or bins of a column, or like all rows under Gaussian, log-normal, Poisson and discretised logistic leaves"`
	Components     int     `yaml:"components" min:"1" max:"256" doc:"circuits that are learned from bootstrap samples of the rows and mixed; 1: one circuit, of all rows"`
	MaxMultipliers int     `yaml:"max_multipliers" min:"0" max:"1000000000" doc:"most multipliers that the circuit takes as hardware, before tables are packed; 0: no bound"`
	Search         bool    `yaml:"search" doc:"choose threshold, min_rows, clusters, smoothing and leaf by data.valid, beginning with those given"`
}

// Data is the rows and how to read them: three splits of the same columns.
type Data struct {
	Train    Paths    `yaml:"train" doc:"training rows: a file, directory or pattern (dir/**/*.go), a list of them, builtin:digits/train or builtin:random?rows=512&vars=784&categories=256; $GOROOT/ is the Go installation"`
	Valid    Paths    `yaml:"valid" doc:"validation rows, used for early stopping and reports"`
	Test     Paths    `yaml:"test" doc:"test rows, used once at the end"`
	Expected string   `yaml:"expected" doc:"which files these are and how to get them; shown when they are missing"`
	Header   string   `yaml:"header" enum:"auto|yes|no" doc:"whether the first line of a .csv names the columns"`
	Missing  []string `yaml:"missing" doc:"cells that mean missing, beside the empty cell, ?, NA, N/A, null and nan in any case; a model keeps them for its queries"`
	Columns  []Column `yaml:"columns" doc:"types and leaves of named columns; types of the others are inferred"`
	Image    []int    `yaml:"image" min:"1" max:"65536" doc:"[height, width, channels] if rows are images; empty: as the file says"`
	Text     Text     `yaml:"text" doc:"how text is cut into rows of tokens"`
}

// Column types a column of a table, where inference would type it otherwise.
type Column struct {
	Name       string `yaml:"name" doc:"name in the header, number in the file counted from 1, or * for all others"`
	Type       string `yaml:"type" enum:"discrete|continuous|label|skip" doc:"numbers 0..categories-1, real numbers, texts that are told apart, or no variable"`
	Categories int    `yaml:"categories" min:"0" max:"16777216" doc:"values of a discrete column; 0: as many as the data has"`
	Leaf       Leaf   `yaml:"leaf" doc:"distribution of the column, instead of model.leaf, whose settings hold where this says nothing"`
}

// Text says how text becomes rows of tokens: windows of one length.
type Text struct {
	Unit       string `yaml:"unit" enum:"auto|char|word" doc:"what a token is; auto: a character, and only .txt files are text"`
	Length     int    `yaml:"length" min:"1" max:"1048576" doc:"tokens per row"`
	Vocabulary int    `yaml:"vocabulary" min:"0" max:"16777216" doc:"tokens that are told apart, the most frequent ones and one for all others; 0: 256 characters or 10000 words"`
	MaxBytes   int    `yaml:"max_bytes" min:"0" max:"1e15" doc:"text read of all files together; 0: all"`
}

// Compile is how the circuit becomes a program. It changes speed and memory, and the last bits
// of results.
type Compile struct {
	MaxGroups        int     `yaml:"max_groups" min:"1" max:"512" doc:"partitions that the index tensors of a layer are cut into at most; kernels pass over what pads them, so it changes memory and not time"`
	PaddingTolerance float64 `yaml:"padding_tolerance" min:"0" max:"100" doc:"padded edges allowed, as a fraction of the edges, before another partition is used; kernels pass over them"`
	BlockSize        int     `yaml:"block_size" enum:"0|1|2|4|8|16|32" doc:"units of a block; 0: chosen by the compiler"`
}

// Train is how parameters are learned: the rule, its schedule, and what is kept.
type Train struct {
	Rule           string     `yaml:"rule" enum:"minibatch-em|fullbatch-em|anemone" doc:"update rule"`
	Epochs         int        `yaml:"epochs" min:"0" max:"1000000" doc:"passes over the training rows, train.finish.epochs included"`
	BatchSize      int        `yaml:"batch_size" min:"1" max:"16777216" doc:"most rows of a step: an epoch is spread evenly over as few steps as that allows; it may exceed what fits in memory"`
	StepSize       StepSize   `yaml:"step_size" doc:"how far a mini-batch moves the parameters: theta = (1-a) theta + a new"`
	Discriminative float64    `yaml:"discriminative" min:"0" max:"1" doc:"share d of the class: instead of log p(class, x) the mean of log p(class, x) - d log p(x) is raised, at 1 that of log p(class | x); needs model.class"`
	Momentum       float64    `yaml:"momentum" min:"0" max:"1" doc:"share of the averaged statistics that a step of anemone keeps, below 1"`
	Pseudocount    float64    `yaml:"pseudocount" min:"0" max:"1000000" doc:"counts added to a distribution, spread evenly, or as the present parameters expect in Gaussian, log-normal, Poisson and discretised logistic leaves; for anemone, whose counts are those of one row, 5e-6 unless set"`
	ShardRows      int        `yaml:"shard_rows" min:"0" max:"2048" doc:"rows whose flows are added as one unit; 0: 512, or on a cluster few enough that each worker there at the start of the run gets a shard of every step"`
	Subsets        int        `yaml:"subsets" min:"1" max:"1000000" doc:"fullbatch-em updates after each of this many even subsets of the rows in turn"`
	Steps          int        `yaml:"steps" min:"0" max:"1e12" doc:"stop after this many steps; 0: as many as the epochs need"`
	Patience       int        `yaml:"patience" min:"0" max:"1000000" doc:"stop after this many epochs without a better valid_ll and keep the best; 0: never"`
	Finish         Finish     `yaml:"finish" doc:"full-batch epochs at the end, which are left out where train.patience ends a run before them"`
	Checkpoint     Checkpoint `yaml:"checkpoint" doc:"when the state of training is saved"`
	Samples        int        `yaml:"samples" min:"0" max:"4096" doc:"rows drawn at the end, into samples.png for images and samples.txt for text; 0: no file"`
}

// StepSize is the step size as a function of progress, before train.finish.
type StepSize struct {
	Schedule string  `yaml:"schedule" enum:"constant|linear|cosine" doc:"shape between from and to; constant stays at from"`
	From     float64 `yaml:"from" min:"0" max:"1" doc:"first step size"`
	To       float64 `yaml:"to" min:"0" max:"1" doc:"last step size"`
	Pieces   []Piece `yaml:"pieces" doc:"instead of from and to: pieces one after another, each of the given schedule"`
}

// Piece is a part of a StepSize, whose lengths are relative to each other.
type Piece struct {
	Length float64 `yaml:"length" min:"0" max:"1000000" doc:"length of the piece relative to the others, for example its epochs"`
	From   float64 `yaml:"from" min:"0" max:"1" doc:"first step size"`
	To     float64 `yaml:"to" min:"0" max:"1" doc:"last step size"`
}

// Finish is the full-batch EM that may follow the other epochs.
type Finish struct {
	Epochs      int     `yaml:"epochs" min:"0" max:"1000000" doc:"how many of train.epochs, the last ones, are full-batch EM; the first epoch never is"`
	Pseudocount float64 `yaml:"pseudocount" min:"0" max:"1000000" doc:"pseudocount of these epochs"`
}

// Checkpoint is when the state of training is saved, so that an interrupted run can be resumed.
type Checkpoint struct {
	Epochs   int           `yaml:"epochs" min:"0" max:"1000000" doc:"save after this many epochs; 0: at the end only"`
	Steps    int           `yaml:"steps" min:"0" max:"1e12" doc:"also save after this many steps; 0: never"`
	Interval time.Duration `yaml:"interval" min:"0" doc:"also save within an epoch when this much time has passed; 0s: never"`
	Keep     int           `yaml:"keep" min:"1" max:"1000000" doc:"newest checkpoints kept"`
}

// Cluster is how work is spread over workers. Results depend on it only where train.shard_rows
// is left out, and is chosen by the number of workers.
type Cluster struct {
	Transport string `yaml:"transport" enum:"tcp|nats" doc:"how flows and parameters travel: between the workers directly, or through the broker"`
	Workers   int    `yaml:"workers" min:"1" max:"4096" doc:"wait for this many workers before the work starts; more may join, and some may leave"`
}

// Job is what a cluster does. Results go to runs/<id> below its directory.
type Job struct {
	Kind   string `yaml:"kind" enum:"train|eval|loglik|conditional|moments|covariance|expect|quantiles|classify|mpe|sample|predict" doc:"train the circuit; or evaluate job.model on job.data, write what pce query or pce predict of that name does, or draw rows"`
	Model  string `yaml:"model" doc:"model file of every kind but train"`
	Data   Paths  `yaml:"data" doc:"rows of every kind but train and sample, read as the section data says"`
	Rows   int    `yaml:"rows" min:"1" max:"1e12" doc:"rows that sample draws"`
	Seed   uint64 `yaml:"seed" min:"0" doc:"seed of the draws of sample and mpe"`
	Format string `yaml:"format" enum:"csv|npy|png" doc:"what is written, to out.<format>; png: images of sample and mpe"`

	Columns       []string  `yaml:"columns" doc:"columns of conditional, covariance and quantiles, the class of classify, those that loglik is given or that mpe completes; by name or number from 1"`
	Levels        []float64 `yaml:"levels" doc:"levels of quantiles, between 0 and 1; unless given 0.05, 0.5 and 0.95"`
	Of            []string  `yaml:"of" doc:"polynomials of degree 2 in the columns, such as 2*age - $3^2, whose expectations expect writes"`
	Soft          bool      `yaml:"soft" doc:"cells of job.data may be a range 30..40, a set {a|b} or likelihoods [0.2|0.8]"`
	Probabilities bool      `yaml:"probabilities" doc:"classify writes the probability of every category"`
	Result        string    `yaml:"result" enum:"prediction|margin|leaf|class" doc:"what predict writes: the forest's predictions, raw scores, leaves or classes"`
	Schedule      string    `yaml:"schedule" doc:"schedule under which predict compiles the forest: a file, preset:NAME, auto, or the lines of the schedule themselves"`
	Profile       string    `yaml:"profile" doc:"profile of the forest for job.schedule: how many rows visit each node, as pce forest profile writes it"`
	Candidates    int       `yaml:"candidates" min:"0" max:"1048576" doc:"drawn completions of a row that mpe improves where max-product is not exact"`
	Search        int       `yaml:"search" min:"0" max:"1048576" doc:"partial completions of a row that mpe extends to prove that nothing is likelier where max-product is not exact"`
}

// Default returns the settings that hold where neither a file, the environment nor --set says
// otherwise. Each call returns a new Config. Anemone has another pseudocount, which Load puts in.
func Default() *Config {
	return &Config{
		Name:      "run",
		Seed:      42,
		Device:    "auto",
		Precision: "mixed",
		Model: Model{
			Structure: "hclt",
			Leaf:      Leaf{Type: "auto", Bins: 32},
			HCLT:      HCLT{Tree: "chow-liu", Bins: 32, Softening: 0.5, MaxRows: 20000},
			HMM:       HMM{Tied: true},
			PD:        PD{SplitInterval: 4, MaxProductBlocks: 8},
			RATSPN:    RATSPN{Depth: 5, Repetitions: 2, Pieces: 2},
			LearnSPN:  LearnSPN{Columns: "auto", Rows: "em", MinRows: 300, Clusters: 2, Leaf: "chow-liu", Smoothing: 2, Components: 1},
		},
		Data: Data{
			Header: "auto",
			Text:   Text{Unit: "auto", Length: 32},
		},
		Compile: Compile{MaxGroups: 8, PaddingTolerance: 0.1},
		Train: Train{
			Rule:        "minibatch-em",
			Epochs:      20,
			BatchSize:   512,
			StepSize:    StepSize{Schedule: "linear", From: 0.9, To: 0.05},
			Momentum:    0.5,
			Pseudocount: 0.01,
			Subsets:     1,
			Finish:      Finish{Pseudocount: 0.1},
			Checkpoint:  Checkpoint{Epochs: 1, Keep: 2},
			Samples:     64,
		},
		Cluster: Cluster{Transport: "tcp", Workers: 1},
		Job:     Job{Kind: "train", Rows: 1, Format: "csv", Result: "prediction", Candidates: 8, Search: 200},
	}
}
