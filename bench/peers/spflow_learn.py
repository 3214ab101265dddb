"""Learns a network with SPFlow (branch legacy) and prints a JSON line.

    spflow_learn.py NAME TRAIN.csv TEST.csv
    spflow_learn.py --split nips100.csv[.gz] WORDS PREFIX

The second form writes PREFIX.train.csv and PREFIX.test.csv: the first columns of the table,
parted as SPFlow's experiments part it. Tables have no header.
"""
import gzip
import json
import sys
import time

import numpy as np


def split(path, words, prefix):
    from sklearn.model_selection import train_test_split
    opened = gzip.open(path, 'rt') if path.endswith('.gz') else open(path)
    table = np.loadtxt(opened, delimiter=',', skiprows=1)[:, :words].astype(int)
    parts = train_test_split(table, test_size=0.2, random_state=42)
    for name, part in zip(('train', 'test'), parts):
        np.savetxt(f'{prefix}.{name}.csv', part, fmt='%d', delimiter=',')


def learn(name, train, test):
    from spn.algorithms.Inference import log_likelihood
    from spn.algorithms.LearningWrappers import learn_mspn
    from spn.structure.Base import Context, get_number_of_nodes
    from spn.structure.StatisticalTypes import MetaType
    train, test = (np.loadtxt(p, delimiter=',') for p in (train, test))
    context = Context(meta_types=[MetaType.DISCRETE] * train.shape[1])
    context.add_domains(np.concatenate([train, test]))
    begin = time.time()
    spn = learn_mspn(train, context, cols='rdc', rows='rdc', min_instances_slice=200, threshold=0.3, cpus=1)
    seconds = time.time() - begin
    print(json.dumps({'learner': 'spflow', 'data': name, 'wall': seconds, 'nodes': get_number_of_nodes(spn),
                      'test_ll': float(log_likelihood(spn, test).mean())}), flush=True)


if sys.argv[1] == '--split':
    split(sys.argv[2], int(sys.argv[3]), sys.argv[4])
else:
    learn(*sys.argv[1:4])
