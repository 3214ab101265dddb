# A hidden Markov model: al[t,s] is the probability of the columns from t on, given state s
# at column t. All columns share the transitions a and the categories' probabilities e.
param T, S : T >= 1, S >= 1; # columns of the data, and model.latents
param C : C >= 1;            # categories of the data
input int x[T] in [0,C);
input float e[S,C], a[S,S], a0[S];
array float al[T,S], next[T,S], out[];
output out;

al[t,s]    = e[s,x[t]]*next[t,s] : { [t,s] : 0 <= t < T, 0 <= s < S };
next[t,r] += a[r,s]*al[t+1,s]    : { [t,r,s] : 0 <= t < T-1, 0 <= r < S, 0 <= s < S };
next[t,r] += 1                   : { [t,r] : t = T-1, 0 <= r < S };
out[]     += a0[s]*al[0,s]       : { [s] : 0 <= s < S };
