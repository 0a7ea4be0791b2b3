"""Adjectives: `French = English`, with `/feminine` and `/feminine/masculine plural` where no rule yields them.

Frequent words stand first in their class.
"""

# Before the noun in French.
BEFORE = {
    "text": """nouveau/nouvelle = new; premier = first; excellent = excellent; long = long; bref/brève = brief;
        véritable = genuine; bon = good; mauvais/mauvaise = bad; autre = other""",
    "measure": """nouveau/nouvelle = new; grand = major; vaste = far-reaching; véritable = genuine; bon = good;
        premier = first; petit = small; mauvais/mauvaise = bad; autre = other""",
    "body": """nouveau/nouvelle = new; petit = small; grand = large; vieux/vieille = old; premier = first;
        autre = other""",
    "people": """jeune = young; vieux/vieille = old""",
}

# After the noun in French; these say what something is like and may stand in a predicate: X est ADJECTIVE.
QUALITY = {
    "text": """important = important; ambitieux = ambitious; équilibré = balanced; insuffisant = inadequate;
        clair = clear; détaillé = detailed; nécessaire = necessary; utile = useful; controversé = controversial;
        complexe = complex; concret/concrète = concrete; inacceptable = unacceptable; raisonnable = reasonable;
        décevant = disappointing; cohérent = coherent; réaliste = realistic; urgent = urgent; précis/précise = precise;
        courageux = courageous; ambigu/ambiguë = ambiguous; incomplet = incomplete; prudent = cautious;
        historique = historic; contradictoire = contradictory; convaincant = convincing; honnête = honest;
        superflu = superfluous; illisible = unreadable; nuancé = nuanced; prématuré = premature""",
    "measure": """efficace = effective; important = important; nécessaire = necessary; coûteux = costly;
        ambitieux = ambitious; utile = useful; cohérent = coherent; urgent = urgent; juste = fair;
        dangereux = dangerous; transparent = transparent; inutile = useless; moderne = modern; flexible = flexible;
        controversé = controversial; indispensable = indispensable; injuste = unfair; crédible = credible;
        durable = sustainable; opaque = opaque; irréaliste = unrealistic; rentable = profitable; rigide = rigid;
        démocratique = democratic; fragile = fragile; obsolète = obsolete; arbitraire = arbitrary;
        innovant = innovative; onéreux = expensive; absurde = absurd""",
    "body": """utile = useful; efficace = efficient; moderne = modern; coûteux = costly; indispensable = indispensable;
        rentable = profitable; obsolète = obsolete; innovant = innovative; important = important; fiable = reliable;
        dangereux = dangerous; onéreux = expensive""",
    "event": """important = important; utile = useful; long/longue = long; constructif = constructive;
        décevant = disappointing; animé = lively; décisif = decisive; difficile = difficult; tendu = tense;
        fructueux = fruitful; historique = historic; houleux = stormy; instructif = instructive""",
    "people": """inquiet = worried; déçu = disappointed; satisfait = satisfied; surpris/surprise = surprised;
        prudent = cautious; optimiste = optimistic; fier/fière = proud; mécontent = dissatisfied;
        favorable = favourable; sceptique = sceptical; prêt = ready; pessimiste = pessimistic;
        unanime = unanimous; hésitant = hesitant; furieux = furious; réticent = reluctant; confiant = confident;
        indifférent = indifferent; reconnaissant = grateful; impatient = impatient; perplexe = perplexed""",
}

# After the noun in French, never in a predicate.
RELATION = {
    "text": """européen = European; annuel = annual; commun = joint; final/finale/finals = final;
        provisoire = provisional; législatif = legislative; politique = political; technique = technical;
        officiel = official; confidentiel = confidential; interne = internal; financier = financial;
        interinstitutionnel = interinstitutional; trimestriel = quarterly; ministériel = ministerial""",
    "measure": """européen = European; national = national; économique = economic; social = social;
        régional = regional; agricole = agricultural; industriel = industrial; environnemental = environmental;
        commun = common; fiscal = fiscal; international = international; énergétique = energy;
        transfrontalier = cross-border; budgétaire = budgetary; commercial = commercial; local = local;
        scientifique = scientific; maritime = maritime; culturel = cultural; temporaire = temporary;
        volontaire = voluntary; monétaire = monetary; ferroviaire = rail; humanitaire = humanitarian;
        judiciaire = judicial; forestier = forestry; linguistique = linguistic""",
    "body": """européen = European; national = national; régional = regional; public/publique = public;
        international = international; local = local; privé = private; spécialisé = specialised;
        régional = regional; transfrontalier = cross-border; municipal = municipal; militaire = military""",
    "norm": """européen = European; national = national; environnemental = environmental; fiscal = fiscal;
        temporaire = temporary; international = international; technique = technical; strict = strict;
        supplémentaire = additional; obligatoire = compulsory; commercial = commercial; sanitaire = health;
        excessif = excessive; douanier = customs; symbolique = symbolic; uniforme = uniform; minimal = minimum;
        discriminatoire = discriminatory; sévère = severe; unilatéral = unilateral""",
    "event": """international = international; interparlementaire = interparliamentary; annuel = annual;
        public/publique = public; informel = informal; extraordinaire = extraordinary; ministériel = ministerial;
        régional = regional; européen = European; bilatéral = bilateral; préparatoire = preparatory""",
    "treaty": """international = international; commercial = commercial; bilatéral = bilateral; européen = European;
        multilatéral = multilateral; historique = historic; secret/secrète = secret; provisoire = provisional;
        interinstitutionnel = interinstitutional; transatlantique = transatlantic; militaire = military""",
}

NATIONALITIES = """français/française = French; allemand = German; italien = Italian; britannique = British;
    espagnol = Spanish; polonais/polonaise = Polish; européen = European; grec = Greek; portugais/portugaise = Portuguese;
    irlandais/irlandaise = Irish; suédois/suédoise = Swedish; danois/danoise = Danish; belge = Belgian;
    hongrois/hongroise = Hungarian; autrichien = Austrian; turc = Turkish; roumain = Romanian; tchèque = Czech;
    néerlandais/néerlandaise = Dutch; finlandais/finlandaise = Finnish; bulgare = Bulgarian; russe = Russian;
    américain = American; slovaque = Slovak; croate = Croatian; maltais/maltaise = Maltese; slovène = Slovenian;
    letton = Latvian; chypriote = Cypriot; lituanien = Lithuanian; estonien = Estonian; chinois/chinoise = Chinese;
    norvégien = Norwegian; suisse = Swiss; ukrainien = Ukrainian; canadien = Canadian; luxembourgeois/luxembourgeoise =
    Luxembourgish; japonais/japonaise = Japanese"""

# Comparatives of short English adjectives; the others take "more".
COMPARATIVES = {"clear": "clearer", "fair": "fairer", "long": "longer", "lively": "livelier", "costly": "costlier"}

DEGREES = "très = very; trop = too; extrêmement = extremely; assez = quite; particulièrement = particularly; si = so"
